"""Several states of one figure in one SVG: what they share is there once."""

from collections.abc import Mapping
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from matplotlib.figure import Figure

from tokenspace.press.figures import svg
from tokenspace.press.live import Live, Slider, attach

for prefix, address in {
    "": "http://www.w3.org/2000/svg",
    "xlink": "http://www.w3.org/1999/xlink",
}.items():
    ElementTree.register_namespace(prefix, address)


def frames(
    figures: Mapping[str, Figure], name: str, description: str, slider: str = "Frame"
) -> str:
    """One SVG of several figures of one size: the first is seen, the page's slider shows the rest.

    Keys are what the slider says, such as "step 100". A part that differs between figures carries
    the numbers of its own in `data-frame`; parts without it belong to all.
    Raises `ValueError` for fewer than two figures, or sizes that differ.

    >>> from matplotlib.figure import Figure
    >>> made = {"early": Figure(), "late": Figure()}
    >>> text = made["late"].text(0.5, 0.5, "late")
    >>> drawn = frames(made, "fig-both", "nothing, then a word")
    >>> drawn.count('data-frame="1" display="none"')
    1
    """
    sizes = {tuple(figure.get_size_inches()) for figure in figures.values()}
    if len(figures) < 2 or len(sizes) != 1:
        raise ValueError(
            f"{name}: {len(figures)} figures of sizes {sorted(sizes)}; a slider needs at least "
            "two, all of one size."
        )
    drawn = [ElementTree.fromstring(svg(f, name, description)) for f in figures.values()]
    defined = _take_definitions(drawn)
    (merged,) = _merge(drawn)
    merged.insert(1, defined)  # behind the description
    text = ElementTree.tostring(merged, encoding="unicode") + "\n"
    return attach(text, Live("frames", [Slider(slider, list(figures), play=True)]))


def _take_definitions(drawn: list[Element]) -> Element:
    """Glyphs, markers and clip paths of all frames, whose ids say what they are: each one once."""
    found: dict[str, Element] = {}
    for root in drawn:
        for parent in root.iter():
            parent.text, parent.tail = (parent.text or "").strip(), (parent.tail or "").strip()
            for defs in [child for child in parent if child.tag.endswith("}defs")]:
                found |= {one.get("id", one.tag): one for one in defs}
                parent.remove(defs)
    defined = Element("{http://www.w3.org/2000/svg}defs")
    defined.extend(found.values())
    return defined


def _merge(versions: list[Element]) -> list[Element]:
    """One element where all are alike; else their parts merged, or each for its own frames."""
    texts = [ElementTree.tostring(v) for v in versions]
    first = versions[0]
    if len(set(texts)) == 1:
        return [first]
    if len(first) and len({(v.tag, *v.items(), v.text, len(v)) for v in versions}) == 1:
        whole = Element(first.tag, first.attrib)
        whole.text = first.text
        for parts in zip(*versions, strict=True):
            whole.extend(_merge(list(parts)))
        return [whole]
    found: dict[bytes, tuple[Element, list[str]]] = {}
    for i, (text, version) in enumerate(zip(texts, versions, strict=True)):
        found.setdefault(text, (version, []))[1].append(str(i))
    for element, mine in found.values():
        element.set("data-frame", " ".join(mine))
        if "0" not in mine:
            element.set("display", "none")
    return [element for element, _ in found.values()]
