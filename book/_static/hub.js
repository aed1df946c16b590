/* A hub that is dragged towards the origin: links, readings and words follow. Sliders do the same. */
addEventListener("DOMContentLoaded", () => tsLive("hub", (svg, data, controls) => {
  const all = (name, tag) => [...svg.querySelectorAll(`.ts-${name} ${tag}`)];
  const [links, tokens, rows] = [all("links", "path"), all("tokens", "use"), all("hub", "use")];
  const circle = all("circle", "path")[0], handle = all("handle", "use")[0];
  const [cx, cy] = data.origin;
  let at = [data.start, data.count];

  const put = (use, x, y) => { use.setAttribute("x", x); use.setAttribute("y", y); };
  const line = (points) => "M" + points.map((point) => point.join(" ")).join("L");
  const row = (j, radius) => [cx + radius * data.hub[j][0], cy + radius * data.hub[j][1]];
  const tint = (node, what, end) => { node.style[what] = data.colours[end < 0 ? "fellow" : "hub"]; };

  const draw = (i, k) => {
    const radius = data.radii[i];
    rows.forEach((use, j) => {
      put(use, ...row(j, radius));
      use.style.display = j < data.counts[k] ? "" : "none";
    });
    data.links[i][k].forEach((ends, token) => {
      ends.forEach((end, side) => {
        const link = links[2 * token + side];
        const to = end < 0 ? data.fellows[token][-1 - end] : row(end, radius);
        link.setAttribute("d", line([data.tokens[token], to]));
        tint(link, "stroke", end);
      });
      tint(tokens[token], "fill", Math.min(...ends));
    });
    const r = radius * data.unit;
    circle.setAttribute("d", `M${cx + r} ${cy}A${r} ${r} 0 1 0 ${cx - r} ${cy}A${r} ${r} 0 1 0 ${cx + r} ${cy}`);
    put(handle, cx + r, cy);
    grip.setAttribute("cx", cx + r);
  };
  const plot = (i, k) => {
    for (const name of ["reading", "taken"]) {
      const points = data[name][k], [x, y] = points[i];
      all(name, "path")[0].setAttribute("d", line(points));
      put(all(`mark-${name}`, "use")[0], x, y);
      const mark = all(`at-${name}`, "path")[0];
      mark.setAttribute("transform", `translate(${x - data[name][k][data.start][0]})`);
    }
    const level = all("level", "path")[0];
    level.setAttribute("transform", `translate(0 ${data.level[k] - data.level[data.count]})`);
  };

  /* The ring takes a drag; fingers take the handle, and scroll the page elsewhere. */
  const shape = (attributes, className) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.setAttribute("class", className);
    return svg.appendChild(node);
  };
  const last = data.radii.at(-1) * data.unit;
  const area = shape({ cx, cy, r: last * 1.06 }, "ts-area");
  const grip = shape({ cx: cx + data.radii[data.start] * data.unit, cy, r: 18 }, "ts-grip");
  const follow = (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(area.getScreenCTM().inverse());
    const radius = Math.hypot(point.x - cx, point.y - cy) / data.unit;
    const gaps = data.radii.map((one) => Math.abs(one - radius));
    const nearest = gaps.indexOf(Math.min(...gaps));
    if (nearest !== at[0]) controls.move(0, nearest);
  };
  for (const target of [area, grip]) {
    target.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      event.preventDefault();
      if (target === grip || event.pointerType === "mouse") target.setPointerCapture(event.pointerId);
      follow(event);
    });
    target.addEventListener("pointermove", (event) => {
      if (target.hasPointerCapture(event.pointerId)) follow(event);
    });
  }
  return ([i, k]) => {
    at = [i, k];
    draw(i, k);
    plot(i, k);
    controls.say(data.says[i][k]);
  };
}));
