"""Every page by axe-core's rules, in light, in dark and on a phone; and how to cite it."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from axe_playwright_python.sync_playwright import Axe
from pybtex.database import parse_file
from tests.site.test_site import pages

pytestmark = pytest.mark.site

HARMFUL = ("serious", "critical")
VIEWS = {"light": (1400, "light"), "dark": (1400, "dark"), "phone": (390, "light")}


def harm(tab: Any) -> list[str]:
    """What axe finds on a page that keeps a reader out, with the first element of each kind."""
    found = Axe().run(tab).response["violations"]
    return [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found if v["impact"] in HARMFUL]


@pytest.mark.parametrize("view", VIEWS)
def test_no_page_keeps_a_reader_out(site: Path, browser: Any, view: str) -> None:
    width, scheme = VIEWS[view]
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
    )
    found = {}
    for page in pages(site):
        tab = context.new_page()
        tab.goto((site / f"{page}.html").as_uri())
        tab.evaluate("window.MathJax?.startup?.promise")
        if complaints := harm(tab):
            found[page] = complaints
        tab.close()
    context.close()
    assert found == {}


def test_axe_would_find_harm(browser: Any) -> None:
    tab = browser.new_page()
    tab.set_content("<html lang=en><main><img src='x.png'><button></button></main></html>")
    assert {line.split(":")[0] for line in harm(tab)} == {"image-alt", "button-name"}
    tab.close()


@pytest.mark.parametrize(
    ("page", "entry"),
    [
        ("intro", "@software{tokenspace"),
        ("guide/reading", "@software{tokenspace"),
        ("notebooks/staircase/language", "yao2026staircase"),
        ("notebooks/hub/models", "quemy2026hub"),
        ("notebooks/flow/vertices", "li2026convergeflow"),
        ("notebooks/curvature/chess", "modenbach2026curvature"),
    ],
)
def test_the_citation_button_leads_to_the_right_entry(
    site: Path, browser: Any, page: str, entry: str
) -> None:
    tab = browser.new_page()
    tab.goto((site / f"{page}.html").as_uri())
    tab.get_by_role("link", name="Cite this page").click()
    section = tab.locator(":target, section:has(> :target)").first
    assert entry in section.locator("pre").inner_text()
    assert section.locator("button.copybtn").count() == 1
    tab.close()


def test_the_book_cites_itself_as_its_citation_file_does(source: Path) -> None:
    entry = parse_file(source / "book" / "citation.bib").entries["tokenspace"].fields
    told = yaml.safe_load((source / "CITATION.cff").read_text())
    address = yaml.safe_load((source / "book" / "_config.yml").read_text())["repository"]["url"]
    assert (entry["title"], entry["version"], entry["url"]) == (
        told["title"],
        told["version"],
        address,
    )
