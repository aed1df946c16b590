/* Particles on their way to corners: one slider is the level, the other shows where each is heading. */
addEventListener("DOMContentLoaded", () => tsLive("particles", (svg, { panels, says }, controls) => {
  const line = (places) => "M" + places.map((place) => place.join(" ")).join("L");
  const at = (path, level) => path.slice(2 * level, 2 * level + 2);
  const put = (use, [x, y]) => { use.setAttribute("x", x); use.setAttribute("y", y); };
  const sides = panels.map((side, i) => {
    const all = (what, tag) => [...svg.querySelectorAll(`.ts-${what}-${i} ${tag}`)];
    const aims = all("trails", "path").map((trail) => trail.cloneNode());
    const group = document.createElementNS("http://www.w3.org/2000/svg", "g");
    group.setAttribute("class", "ts-aims");
    group.append(...aims);
    svg.querySelector(`.ts-trails-${i}`).after(group);
    return { ...side, aims, trails: all("trails", "path"), balls: all("dots", "use"),
      corners: all("stars", "use"), ring: all("ring", "path")[0] };
  });
  const show = (level, heading) => {
    for (const side of sides) {
      const corners = side.stars.map((path) => at(path, level));
      side.corners.forEach((use, j) => put(use, corners[j]));
      side.ring.setAttribute("d", line([...corners, corners[0]]));
      side.balls.forEach((use, j) => put(use, at(side.dots[j], level)));
      side.dots.forEach((path, j) => {
        const way = Array.from({ length: level + 1 }, (_, k) => at(path, k));
        side.trails[j].setAttribute("d", heading ? "" : line(way));
        const aim = line([at(path, level), at(side.targets[j], level)]) + "m-2-2l4 4m0-4l-4 4";
        side.aims[j].setAttribute("d", heading ? aim : "");
      });
    }
    controls.say(says[level]);
  };
  sides.forEach(({ aims }) => aims.forEach((aim) => aim.setAttribute("d", "")));
  return ([level, heading]) => show(level, heading);
}));
