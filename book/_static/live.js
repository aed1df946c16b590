/* Live figures: wakes the sliders below every figure of a kind. `wake(svg, data, controls)` gives
   back what to do when a slider has moved, a function of the list of all positions;
   `controls.move(slider, position)` moves one, `controls.say(text)` rewrites the sentence below. */
function tsLive(kind, wake) {
  for (const holder of document.querySelectorAll(`.ts-figure metadata[data-kind="${kind}"]`)) {
    const svg = holder.parentNode, box = svg.nextElementSibling;
    const live = JSON.parse(holder.textContent);
    const inputs = [...box.querySelectorAll("input")], says = box.querySelector(".ts-says");
    const move = (i, to) => {
      const input = inputs[i], word = live.sliders[i].words[(input.value = to, input.value)];
      input.closest(".ts-control").querySelector("output").value = word;
      input.setAttribute("aria-valuetext", word);
      change(inputs.map((one) => Number(one.value)));
    };
    const change = wake(svg, live.data, { move, say: (text) => { says.value = text; } });
    inputs.forEach((input, i) => {
      const stop = tsPlay(input.closest(".ts-control").querySelector(".ts-play"), input, (to) => move(i, to));
      input.addEventListener("input", () => { stop(); move(i, input.value); });
      input.disabled = false;
    });
  }
}

/* A button that moves a slider along until its end, or until someone else moves it. */
function tsPlay(button, input, move) {
  if (!button) return () => {};
  let timer = 0;
  const stop = () => { clearInterval(timer); timer = 0; button.textContent = "Play"; };
  button.disabled = false;
  button.addEventListener("click", () => {
    if (timer) return stop();
    if (input.value === input.max) move(0);
    button.textContent = "Pause";
    timer = setInterval(() => {
      move(Number(input.value) + 1);
      if (input.value === input.max) stop();
    }, 600);
  });
  return stop;
}
