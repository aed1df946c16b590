// Binds the site's pages into one document: names of its own, links that lead inside, a heading for
// each part, contents, and the solutions at the end. `a[data-page]` gets the number of a page.
{
  const root = document.documentElement.dataset.site, contents = document.querySelector(".ts-contents ol");
  const articles = [...document.querySelectorAll("article[data-source]")];
  const sources = new Set(articles.map((article) => article.dataset.source));
  const make = (tag, attributes, ...inside) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...inside);
    return element;
  };
  const anchor = (page, name) => `${page.replaceAll("/", "-")}--${name}`;
  const link = (id, ...inside) => make("a", { href: `#${id}` }, ...inside);
  const numbered = (id) => make("a", { href: `#${id}`, "data-page": "" });
  const list = (depth, id, title) =>
    contents.append(make("li", { class: `ts-depth-${depth}` }, link(id, title), numbered(id)));
  const solutions = make("article", { class: "bd-article ts-chapter", id: "solutions" },
    make("h1", { class: "ts-part" }, "Solutions"));

  const rename = (element, page) => {
    if (element.id) element.id = anchor(page, element.id);
    for (const name of ["for", "aria-labelledby", "aria-describedby", "aria-controls"]) {
      const named = element.getAttribute(name);
      if (named) element.setAttribute(name, named.split(/\s+/).map((one) => anchor(page, one)).join(" "));
    }
    const site = new URL(`${page}.html`, root);
    if (element.matches("img")) element.src = new URL(element.getAttribute("src"), site).href;
    const to = element.matches("a[href]") && element.getAttribute("href");
    if (!to || /^[a-z]+:/.test(to)) return;
    const url = new URL(to, site);
    const target = decodeURI(url.href.split("#")[0].slice(root.length)).replace(/\.html$/, "");
    if (sources.has(target)) element.href = `#${anchor(target, decodeURIComponent(url.hash.slice(1)))}`;
    else element.removeAttribute("href"); // a download, the search
  };
  const setAside = (solution, exercise, id) => {
    solution.replaceWith(make("p", { class: "ts-aside" }, "Solution: page ", numbered(id)));
    solution.id = id;
    const posed = exercise?.querySelector(".admonition-title")?.textContent ?? "Solution";
    solution.querySelector(".admonition-title")?.replaceChildren(posed);
    solutions.append(solution);
  };

  for (const article of articles) {
    const { source, part } = article.dataset;
    for (const one of article.querySelectorAll("a.headerlink, button, script, .ts-control")) one.remove();
    for (const one of article.querySelectorAll("details")) one.open = true;
    for (const one of article.querySelectorAll(":not(svg *)")) rename(one, source);
    for (const one of article.querySelectorAll("h1, h2, h3, h4, h5")) { // parts are the first level
      const attributes = Object.fromEntries([...one.attributes].map(({ name, value }) => [name, value]));
      one.replaceWith(make(`h${Number(one.tagName[1]) + 1}`, attributes, ...one.childNodes));
    }
    article.id = anchor(source, "");
    article.className = "bd-article ts-chapter";
    let exercise = null, number = 0;
    for (const box of [...article.querySelectorAll("div.exercise, div.solution")]) {
      if (box.matches(".exercise")) exercise = box;
      else setAside(box, exercise, anchor(source, `solution-${number++}`));
    }
    if (part) {
      article.prepend(make("h1", { class: "ts-part", id: anchor(source, "part") }, part));
      list(0, anchor(source, "part"), part);
    }
    const inPart = articles.slice(0, articles.indexOf(article) + 1).some((one) => one.dataset.part);
    for (const heading of article.querySelectorAll("h2, h3")) {
      const below = heading.tagName === "H3";
      if (inPart || !below) list(inPart + below, heading.closest("section").id, heading.textContent.trim());
    }
  }
  if (solutions.children.length > 1) {
    list(0, "solutions", "Solutions");
    document.querySelector("main").append(solutions);
  }
}
