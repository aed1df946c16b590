// Starts the deck; then makes what is too large for its slide smaller, a little at a time.
const WIDTH = 1280, HEIGHT = 720, EDGE = 24, SMALLEST = 0.6;

const SEEN = ":not(svg *, mjx-container *), mjx-container > mjx-math";

function overflows(slide) {
  const scale = Reveal.getScale(), frame = slide.getBoundingClientRect(), edge = EDGE * scale;
  return [...slide.querySelectorAll(SEEN)].some((element) => {
    const box = element.getBoundingClientRect();
    if (!box.width) return false; // not shown
    return box.right > frame.left + WIDTH * scale - edge || box.left < frame.left + edge
      || box.bottom > frame.top + HEIGHT * scale - edge || box.top < frame.top + edge;
  });
}

function fit(slide) {
  for (let size = 1; size >= SMALLEST && overflows(slide); size -= 0.05) {
    slide.style.fontSize = `${(size - 0.05).toFixed(2)}em`;
  }
}

function offerCommand(box) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Copy" });
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(box.querySelector("code").textContent);
    button.textContent = "Copied";
  });
  box.append(button);
}

addEventListener("DOMContentLoaded", async () => {
  document.querySelectorAll(".ts-command").forEach(offerCommand);
  await Reveal.initialize({
    width: WIDTH, height: HEIGHT, margin: 0, center: false, hash: true, slideNumber: "h.v",
    transition: "none", viewDistance: 1000, mobileViewDistance: 1000,
  });
  await MathJax.startup.promise;
  await document.fonts.ready;
  Reveal.getSlides().forEach(fit);
  document.documentElement.dataset.ready = "";
});
