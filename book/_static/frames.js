/* A figure of several frames gets a slider; without this script its first frame is seen. */
addEventListener("DOMContentLoaded", () => {
  for (const svg of document.querySelectorAll(".ts-figure svg:has(> g.ts-frame)")) {
    const frames = [...svg.querySelectorAll(":scope > g.ts-frame")];
    const slider = Object.assign(document.createElement("input"),
      { type: "range", min: 0, max: frames.length - 1, value: 0 });
    slider.setAttribute("aria-label", "Frame of the figure above");
    const label = document.createElement("output");
    const show = () => {
      frames.forEach((frame, i) => {
        if (i == slider.value) frame.removeAttribute("display");
        else frame.setAttribute("display", "none");
      });
      label.value = frames[slider.value].dataset.label;
      slider.setAttribute("aria-valuetext", label.value);
    };
    slider.addEventListener("input", show);
    const row = document.createElement("div");
    row.className = "ts-slider";
    row.append(slider, label);
    svg.after(row);
    show();
  }
});
