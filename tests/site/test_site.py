"""The site as a reader meets it: opened from disk, in Chromium, narrow and wide, light and dark."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from filelock import FileLock
from tests.site.axe import harm

pytestmark = pytest.mark.site

VIEWS = [(1400, "light"), (1400, "dark"), (390, "light")]
LIMIT = 3_000_000  # bytes a page may have
LOOK = (Path(__file__).parent / "look.js").read_text()


def pages(site: Path) -> list[str]:
    """The pages that people read, by name."""
    found = {str(p.relative_to(site).with_suffix("")) for p in site.rglob("*.html")}
    return sorted(p for p in found if not p.startswith("_static") and p != "index")


@pytest.fixture(scope="session")
def visits(site: Path, browser: Any, shared: Path) -> dict[tuple[str, int, str], dict[str, Any]]:
    """Every page at every view: what it asked for, what it complained of, how it looks."""
    with FileLock(shared / "visits.lock"):  # one worker visits for all
        kept = shared / "visits.json"
        if not kept.exists():
            kept.write_text(json.dumps(list(_visits(site, browser))))
    return {
        (page, width, scheme): look for page, width, scheme, look in json.loads(kept.read_text())
    }


def _visits(site: Path, browser: Any) -> Iterator[tuple[str, int, str, dict[str, Any]]]:
    for width, scheme in VIEWS:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            reduced_motion="reduce",
        )
        for page in pages(site):
            yield page, width, scheme, visit(context, site, page)
        context.close()


def visit(context: Any, site: Path, page: str) -> dict[str, Any]:
    """Open one page and look at it."""
    tab = context.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    tab.on("request", lambda r: asked.append(r.url))
    tab.on("requestfailed", lambda r: complaints.append(f"failed: {r.url}"))
    tab.on("pageerror", lambda e: complaints.append(str(e)))
    tab.on(
        "console",
        lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None,
    )
    tab.goto((site / f"{page}.html").as_uri())
    look: dict[str, Any] = tab.evaluate(LOOK)
    look["harm"] = harm(tab)
    tab.close()
    outside = [u for u in asked if not u.startswith((site.as_uri(), "data:", "blob:"))]
    return {**look, "outside": outside, "complaints": complaints}


def broken(visits: dict[tuple[str, int, str], dict[str, Any]], what: str) -> dict[str, Any]:
    """The views where something was found."""
    return {f"{p} at {w} px, {s}": v[what] for (p, w, s), v in visits.items() if v[what]}


@pytest.mark.parametrize(
    "what",
    [
        "outside",
        "complaints",
        "sideways",
        "unnamed_images",
        "heading_jumps",
        "broken_formulas",
        "low_contrast",
        "unresolved",
        "repeated_ids",
        "harm",
    ],
)
def test_no_page_has(visits: dict[tuple[str, int, str], dict[str, Any]], what: str) -> None:
    assert broken(visits, what) == {}


def test_there_is_something_to_look_at(visits: dict[tuple[str, int, str], dict[str, Any]]) -> None:
    for name in ("notebooks/hub/estimators", "notebooks/hub/models"):
        page = visits[name, 1400, "light"]
        assert page["formulas"] > 0
        assert page["figures"] > 0
        assert page["numbered_captions"] >= page["figures"]
        assert page["words"] > 50


def test_pages_are_light(site: Path) -> None:
    sizes = {p: (site / f"{p}.html").stat().st_size for p in pages(site)}
    assert {p: s for p, s in sizes.items() if s > LIMIT} == {}


def test_the_index_leads_to_the_introduction(site: Path, browser: Any) -> None:
    tab = browser.new_page()
    tab.goto((site / "index.html").as_uri())
    tab.wait_for_url((site / "intro.html").as_uri())
    tab.close()


def test_figures_change_with_the_page(site: Path, browser: Any) -> None:
    tab = browser.new_page(color_scheme="light")
    tab.goto((site / "intro.html").as_uri())
    colour = "getComputedStyle(document.querySelector('.ts-figure circle')).stroke"
    paper = "getComputedStyle(document.body).backgroundColor"
    light = tab.evaluate(colour), tab.evaluate(paper)
    tab.locator(".theme-switch-button:visible").first.click()
    for _ in range(3):
        if tab.evaluate("document.documentElement.dataset.theme") == "dark":
            break
        tab.locator(".theme-switch-button:visible").first.click()
    dark = tab.evaluate(colour), tab.evaluate(paper)
    assert light[0] != dark[0]
    assert light[1] != dark[1]
    tab.close()


def test_search_finds_pages_from_disk_and_quotes_them(site: Path, browser: Any) -> None:
    tab = browser.new_page()
    complaints: list[str] = []
    tab.on("console", lambda m: complaints.append(m.text) if m.type != "log" else None)
    tab.on("pageerror", lambda e: complaints.append(str(e)))
    tab.goto((site / "search.html").as_uri() + "?q=neighbours")
    tab.wait_for_selector("#search-results p.context")
    found = tab.eval_on_selector_all("#search-results li a", "links => links.map(a => a.href)")
    assert any("notebooks/hub/estimators.html" in link for link in found)
    for link in found:
        assert link.startswith(site.as_uri())
        assert Path(link.removeprefix("file://").split("?")[0].split("#")[0]).is_file()
    quotes = tab.eval_on_selector_all("p.context", "quotes => quotes.map(q => q.innerText)")
    assert sum("neighbour" in quote.lower() for quote in quotes) >= len(found) / 2
    assert complaints == []
    tab.close()


def test_the_keyboard_opens_the_search(site: Path, browser: Any) -> None:
    tab = browser.new_page()
    tab.goto((site / "intro.html").as_uri())
    tab.keyboard.press("Control+k")
    field = tab.locator("input[type=search]:visible").first
    field.fill("neighbours")
    field.press("Enter")
    tab.wait_for_selector("#search-results ul.search li a")
    tab.close()


def test_solutions_are_folded_and_open(site: Path, browser: Any) -> None:
    tab = browser.new_page()
    tab.goto((site / "notebooks/hub/estimators.html").as_uri())
    solution = tab.locator("div.solution.dropdown, details.solution").first
    inside = solution.locator("section, .cell").first
    assert not inside.is_visible()
    solution.locator(".admonition-title, summary").first.click()
    inside.wait_for(state="visible")
    tab.close()


def test_on_paper_everything_is_light_and_open(site: Path, browser: Any) -> None:
    tab = browser.new_page(color_scheme="dark")
    tab.goto((site / "notebooks/hub/estimators.html").as_uri())
    closed = "document.querySelectorAll('details:not([open]), .toggle-hidden').length"
    theme = "document.documentElement.dataset.theme"
    before = tab.evaluate(closed), tab.evaluate(theme)
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert (tab.evaluate(closed), tab.evaluate(theme)) == (0, "light")
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert (tab.evaluate(closed), tab.evaluate(theme)) == before
    assert before[0] > 0
    assert before[1] == "dark"
    tab.close()


@pytest.fixture(params=["hub/estimators", "hub/models"])
def downloads(request: pytest.FixtureRequest, site: Path) -> tuple[str, Path]:
    """A notebook's name, and its page's path without a suffix."""
    return request.param, site / "notebooks" / request.param


def test_the_downloaded_notebook_is_executed_and_plain(downloads: tuple[str, Path]) -> None:
    _, page = downloads
    made = nbformat.read(page.with_suffix(".ipynb"), as_version=4)
    nbformat.validate(made)
    code = [c for c in made.cells if c.cell_type == "code"]
    assert sum(bool(c.outputs) for c in code) >= 1
    texts = [c.source for c in made.cells if c.cell_type == "markdown"]
    said = [o.data for c in code for o in c.outputs if "text/markdown" in o.get("data", {})]
    texts += ["".join(data["text/markdown"]) for data in said]
    for text in texts:
        prose = re.sub(r"```.*?```|\$\$.*?\$\$", "", text, flags=re.DOTALL)
        assert not re.search(r"^\s*(:::|\(\S+\)=)|(?<!`)\{[a-z:-]+\}`", prose, re.MULTILINE), prose
    assert "tokenspace" not in json.dumps(made.metadata)


def test_buttons_lead_to_downloads(downloads: tuple[str, Path]) -> None:
    _, page = downloads
    html = page.with_suffix(".html").read_text()
    links = re.findall(r'<a href="([^"]+)"[^>]*class="btn', html)
    stem = page.name
    assert {f"{stem}.ipynb", f"{stem}.py"} <= set(links)
    assert not [link for link in links if link.startswith("http")]  # no home on the web yet


def test_every_link_inside_the_book_leads_somewhere(site: Path) -> None:
    ids: dict[Path, set[str]] = {}
    dead = []
    for page in pages(site):
        here = site / f"{page}.html"
        for link in re.findall(r'href="([^"]*)"', here.read_text()):
            path, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:|//", link) or path.startswith("data:"):
                continue
            target = (here.parent / path.split("?")[0]).resolve() if path else here
            if not target.exists():
                dead.append((page, link))
            elif anchor and target.suffix == ".html":
                if target not in ids:
                    ids[target] = set(re.findall(r'\bid="([^"]+)"', target.read_text()))
                if anchor not in ids[target]:
                    dead.append((page, link))
    assert dead == []
