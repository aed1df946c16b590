/* A board of similarities: choose a square to see its own. Without this script one square's is seen. */
addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.ts-board")) {
    const matrix = JSON.parse(table.dataset.matrix);
    const cells = [...table.querySelectorAll("td[data-square]")];
    const name = table.querySelector("caption output");
    const number = (square) => square.charCodeAt(0) - 97 + 8 * (square[1] - 1);
    const buttons = cells.map((cell) => {
      const button = Object.assign(document.createElement("button"), { type: "button" });
      cell.replaceChildren(button);
      return button;
    });
    const choose = (chosen) => {
      const row = matrix[number(cells[chosen].dataset.square)];
      name.value = cells[chosen].dataset.square;
      cells.forEach((cell, i) => {
        const value = row[number(cell.dataset.square)];
        cell.style.setProperty("--shade", Math.min(Math.abs(value) / table.dataset.largest, 1));
        cell.classList.toggle("ts-less", value < 0);
        buttons[i].textContent = value ?? "–";
        buttons[i].setAttribute("aria-label", `${cell.dataset.square}: ${value ?? "unknown"}`);
        buttons[i].setAttribute("aria-pressed", i == chosen);
        buttons[i].tabIndex = i == chosen ? 0 : -1;
      });
    };
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    buttons.forEach((button, i) => {
      button.addEventListener("click", () => choose(i));
      button.addEventListener("keydown", (event) => {
        const step = steps[event.key];
        if (!step) return;
        event.preventDefault();
        const [down, right] = [Math.floor(i / 8) + step[0], (i % 8) + step[1]];
        if (Math.min(down, right) < 0 || Math.max(down, right) > 7) return;
        choose(8 * down + right);
        buttons[8 * down + right].focus();
      });
    });
    choose(cells.findIndex((cell) => number(cell.dataset.square) == table.dataset.start));
  }
});
