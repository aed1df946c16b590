"""Several states of one figure in one SVG: what they share is there once."""

from collections.abc import Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from matplotlib.figure import Figure

from tokenspace.press.figures import svg
from tokenspace.press.live import Live, attach

ElementTree.register_namespace("", "http://www.w3.org/2000/svg")
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")


def frames(figures: Sequence[Figure], name: str, description: str, live: Live | None) -> str:
    """One SVG of figures of one size, one for each position of the first slider of `live`.

    The slider's start is seen. A part that differs between figures carries the numbers of its own
    in `data-frame`; parts without it belong to all. Raises `ValueError` for figures that are not
    as many as the slider's positions, or not of one size.

    >>> from tokenspace.press.live import Slider
    >>> early, late = Figure(), Figure()
    >>> text = late.text(0.5, 0.5, "late")
    >>> live = Live("frames", [Slider("time", ["early", "late"])])
    >>> drawn = frames([early, late], "fig-both", "nothing, then a word", live)
    >>> drawn.count('data-frame="1" display="none"')
    1
    """
    if live is None:
        raise ValueError(f"{name}: {len(figures)} figures; say by live= which slider chooses one.")
    slider = live.sliders[0]
    sizes = {tuple(figure.get_size_inches()) for figure in figures}
    if len(figures) != len(slider.words) or len(sizes) != 1:
        raise ValueError(
            f"{name}: {len(figures)} figures of sizes {sorted(sizes)} for the {len(slider.words)} "
            f"positions of {slider.name!r}; a slider needs one for each, all of one size."
        )
    drawn = [ElementTree.fromstring(svg(figure, name, description)) for figure in figures]
    defined = _take_definitions(drawn)
    (merged,) = _merge(drawn, str(slider.start))
    merged.insert(1, defined)  # behind the description
    return attach(ElementTree.tostring(merged, encoding="unicode") + "\n", live)


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


def _merge(versions: list[Element], start: str) -> list[Element]:
    """One element where all are alike; else their parts merged, or each for its own frames."""
    texts = [ElementTree.tostring(v) for v in versions]
    first = versions[0]
    if len(set(texts)) == 1:
        return [first]
    if len(first) and len({(v.tag, *v.items(), v.text, len(v)) for v in versions}) == 1:
        whole = Element(first.tag, first.attrib)
        whole.text = first.text
        for parts in zip(*versions, strict=True):
            whole.extend(_merge(list(parts), start))
        return [whole]
    found: dict[bytes, tuple[Element, list[str]]] = {}
    for i, (text, version) in enumerate(zip(texts, versions, strict=True)):
        found.setdefault(text, (version, []))[1].append(str(i))
    for element, mine in found.values():
        element.set("data-frame", " ".join(mine))
        if start not in mine:
            element.set("display", "none")
    return [element for element, _ in found.values()]
