"""What keeps a reader out of a page, by axe-core's rules."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe

HARMFUL = ("serious", "critical")
# Most elements of a page are coloured words of code and lines of drawings. Their contrast is
# measured by look.js; here they would take most of the time.
PRUNE = """() => {
  for (const code of document.querySelectorAll("pre")) code.textContent = code.textContent;
  for (const part of document.querySelectorAll("svg[role=img] > :not(title, desc)")) part.remove();
}"""


def harm(tab: Any) -> list[str]:
    """Prune a page and name each rule that it breaks, with the first element that does."""
    tab.evaluate(PRUNE)
    options = {"resultTypes": ["violations"], "preload": False}  # from disk it would fail
    found = Axe().run(tab, options=options).response["violations"]
    return [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found if v["impact"] in HARMFUL]
