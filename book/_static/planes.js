/* A sentence whose words open: choose one, by mouse, arrow keys or the slider, to see its plane. */
addEventListener("DOMContentLoaded", () => tsLive("planes", (svg, { says }, controls) => {
  const see = tsFrames(svg);
  const all = [...document.querySelectorAll(".ts-sentence")];
  const before = all.filter((row) => row.compareDocumentPosition(svg) & Node.DOCUMENT_POSITION_FOLLOWING);
  const words = before.at(-1)?.querySelectorAll("[data-point]") ?? []; // a slide has none
  const buttons = [...words].map((word) => {
    const button = Object.assign(document.createElement("button"), { type: "button" });
    for (const { name, value } of word.attributes) button.setAttribute(name, value);
    button.append(...word.childNodes);
    word.replaceWith(button);
    return button;
  });
  const mark = (chosen) => buttons.forEach((button, i) => {
    button.classList.toggle("ts-chosen", i === chosen);
    button.setAttribute("aria-pressed", i === chosen);
    button.tabIndex = i === chosen ? 0 : -1;
  });
  const steps = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };
  buttons.forEach((button, i) => {
    button.addEventListener("click", () => controls.move(0, i));
    button.addEventListener("keydown", (event) => {
      const to = { Home: 0, End: buttons.length - 1 }[event.key] ?? i + (steps[event.key] ?? NaN);
      if (!buttons[to]) return;
      event.preventDefault();
      controls.move(0, to);
      buttons[to].focus();
    });
  });
  mark(buttons.findIndex((button) => button.classList.contains("ts-chosen")));
  return ([chosen]) => {
    see(chosen);
    mark(chosen);
    controls.say(says[chosen]);
  };
}));
