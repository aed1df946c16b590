"""What axe-core is asked in the visits of test_site, and how a page says how to cite it."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pybtex.database import parse_file
from tests.site.axe import harm

pytestmark = pytest.mark.site


def test_axe_would_find_harm(browser: Any) -> None:
    tab = browser.new_page()
    tab.set_content("<html lang=en><main><img src='x.png'><button></button></main></html>")
    assert {line.split(":")[0] for line in harm(tab)} >= {"image-alt", "button-name"}
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
    with tab.expect_popup() as opened:
        tab.get_by_role("link", name="Cite this page").click()
    section = opened.value.locator("section:target, section:has(> :target)")
    assert entry in section.locator("pre").inner_text()
    assert section.locator("button.copybtn").count() == 1
    opened.value.close()
    tab.close()


def test_the_book_cites_itself_as_its_citation_file_does(source: Path) -> None:
    entry = parse_file(source / "book" / "citation.bib").entries["tokenspace"].fields
    told = yaml.safe_load((source / "CITATION.cff").read_text())
    assert (entry["title"], entry["version"]) == (told["title"], told["version"])
