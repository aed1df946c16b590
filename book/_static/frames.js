/* A figure of several frames: its slider chooses which are seen. Without scripts its first state is. */
function tsFrames(svg) {
  const parts = svg.querySelectorAll("[data-frame]");
  return (frame) => {
    for (const part of parts) {
      if (part.matches(`[data-frame~="${frame}"]`)) part.removeAttribute("display");
      else part.setAttribute("display", "none");
    }
  };
}
addEventListener("DOMContentLoaded", () => tsLive("frames", (svg) => {
  const see = tsFrames(svg);
  return ([frame]) => see(frame);
}));
