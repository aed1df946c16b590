// What a reader, a screen reader or a phone would trip over on this page.
async () => {
  await window.MathJax?.startup?.promise;
  await Promise.allSettled(document.getAnimations().map(a => a.finished));
  const visible = e => {
    const box = e.getBoundingClientRect(), style = getComputedStyle(e);
    return box.width > 0 && box.height > 0 && style.visibility !== "hidden" && style.opacity !== "0";
  };
  const colour = text => {
    const n = (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
    return text.startsWith("color(") ? n.slice(0, 3).map(x => x * 255).concat(n[3] ?? 1)
                                     : [n[0], n[1], n[2], n[3] ?? 1];
  };
  const over = (top, below) => top.slice(0, 3).map((c, i) => c * top[3] + below[i] * (1 - top[3]));
  const background = e => {
    const layers = [];
    for (; e; e = e.parentElement) {
      const c = colour(getComputedStyle(e).backgroundColor);
      if (c[3] > 0) layers.push(c);
      if (c[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  const luminance = c => {
    const [r, g, b] = c.map(x => x / 255).map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [hi, lo] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (hi + 0.05) / (lo + 0.05);
  };

  const low = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const e = node.parentElement;
    if (!node.data.trim() || !visible(e) || e.closest("svg, script, style, noscript, .skip-link, #pst-skip-link")) continue;
    const style = getComputedStyle(e), below = background(e);
    const size = parseFloat(style.fontSize), bold = parseInt(style.fontWeight) >= 700;
    const need = size >= 24 || (bold && size >= 18.66) ? 3 : 4.5;
    const got = ratio(over(colour(style.color), below), below);
    if (got < need - 0.005) low.set(`${e.tagName}.${e.className}`, `${got.toFixed(2)} "${node.data.trim().slice(0, 30)}"`);
  }

  const headings = [...document.querySelectorAll("main h1, main h2, main h3, main h4, main h5, main h6")]
    .filter(visible).map(h => [Number(h.tagName[1]), h.textContent.trim().slice(0, 40)]);
  const jumps = headings.filter(([level], i) => level > (i ? headings[i - 1][0] : 0) + 1).map(h => h[1]);
  const ones = headings.filter(([level]) => level === 1).length;
  if (ones !== 1) jumps.push(`${ones} headings of level 1`);

  const unnamed = [
    ...[...document.querySelectorAll("img")].filter(i => !i.hasAttribute("alt")),
    ...[...document.querySelectorAll("article img, article svg")]
      .filter(i => !i.closest("[aria-hidden=true], .headerlink, button") && !(i.getAttribute("alt") || i.getAttribute("aria-label"))),
    ...[...document.querySelectorAll(".cell_output img")].filter(i => !i.alt.trim()),
  ].map(i => i.outerHTML.slice(0, 120));

  const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
  const maths = [...document.querySelectorAll(".math")];
  const article = document.querySelector("main article") || document.querySelector("main");
  const text = article.innerText;
  const prose = article.cloneNode(true);
  prose.querySelectorAll("pre, code, script, style").forEach(e => e.remove());
  return {
    sideways: document.documentElement.scrollWidth > innerWidth
      ? [...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1)
          .slice(0, 5).map(e => e.outerHTML.slice(0, 100)).concat(`${document.documentElement.scrollWidth} px`) : null,
    unnamed_images: unnamed,
    heading_jumps: jumps,
    broken_formulas: [
      ...maths.filter(m => !m.querySelector("mjx-container")).map(m => m.textContent.slice(0, 60)),
      ...[...document.querySelectorAll("mjx-merror, [data-mjx-error]")].map(m => m.textContent.slice(0, 60)),
    ],
    low_contrast: Object.fromEntries(low),
    unresolved: prose.textContent.match(/\?\?|\{(numref|ref|eq|cite)[^}]*\}/g),
    repeated_ids: ids.filter((id, i) => ids.indexOf(id) !== i),
    formulas: maths.length,
    figures: document.querySelectorAll("main figure .ts-figure svg").length,
    numbered_captions: document.querySelectorAll("main figcaption .caption-number").length,
    words: text.split(/\s+/).length,
  };
}
