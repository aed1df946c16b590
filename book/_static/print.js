/* On paper: light colours, and everything that is folded opened; afterwards as it was. */
let restore = [];
addEventListener("beforeprint", () => {
  const root = document.documentElement, theme = root.dataset.theme;
  root.dataset.theme = "light";
  restore = [() => { root.dataset.theme = theme; }];
  for (const box of document.querySelectorAll("details:not([open])")) {
    box.open = true;
    restore.push(() => { box.open = false; });
  }
  for (const box of document.querySelectorAll(".toggle-hidden")) {
    box.classList.remove("toggle-hidden");
    restore.push(() => { box.classList.add("toggle-hidden"); });
  }
});
addEventListener("afterprint", () => restore.splice(0).forEach(undo => undo()));
