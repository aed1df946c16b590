"""Particles that fall into tokens: a slider over the noise, by mouse and keys, and its numbers."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.path import Path as Outline
from tests.site.conftest import opened

from tokenspace.flow import toy

pytestmark = pytest.mark.site

PAGE = "notebooks/flow/vertices.html"
NUMBERS = re.compile(r"[\d,]*\d")
SEEN = "uses => uses.map(u => [Number(u.getAttribute('x')), Number(u.getAttribute('y'))])"


def at(paths: list[list[float]], level: int) -> list[list[float]]:
    """The places of all particles at a level."""
    return [path[2 * level : 2 * level + 2] for path in paths]


def seen(figure: Any, what: str) -> list[list[float]]:
    """Where the page draws them."""
    found: list[list[float]] = figure.locator(f".ts-{what} use").evaluate_all(SEEN)
    return found


def test_keys_move_the_particles_of_both_sides_together(site: Path, browser: Any) -> None:
    tab, figure, live = opened(browser, site / PAGE, "particles")
    data, (noise, _) = live["data"], live["sliders"]
    slider, says = figure.locator("input").first, figure.locator(".ts-says")
    last = len(noise["words"]) - 1
    assert says.inner_text() == data["says"][noise["start"]]
    for key, level in (("Home", 0), ("ArrowRight", 1), ("End", last), ("ArrowLeft", last - 1)):
        slider.press(key)
        for i, side in enumerate(data["panels"]):
            assert seen(figure, f"dots-{i}") == at(side["dots"], level)
            assert seen(figure, f"stars-{i}") == at(side["stars"], level)
        assert says.inner_text() == data["says"][level]
        assert slider.get_attribute("aria-valuetext") == noise["words"][level]
    tab.close()


def test_the_second_slider_shows_where_each_particle_is_heading(site: Path, browser: Any) -> None:
    tab, figure, live = opened(browser, site / PAGE, "particles")
    level, side = live["sliders"][0]["start"], live["data"]["panels"][0]
    drawn = "paths => paths.map(p => p.getAttribute('d'))"
    figure.locator("input").nth(1).press("ArrowRight")
    aims = figure.locator(".ts-aims").first.locator("path").evaluate_all(drawn)
    ends = [[float(x) for x in re.findall(r"-?[\d.]+", aim)[2:4]] for aim in aims]
    assert ends == at(side["targets"], level)
    assert set(figure.locator(".ts-trails-0 path").evaluate_all(drawn)) == {""}
    figure.locator("input").nth(1).press("ArrowLeft")
    again = figure.locator(".ts-trails-0 path").evaluate_all(drawn)
    for path, way in zip(side["dots"], again, strict=True):
        assert [float(x) for x in re.findall(r"-?[\d.]+", way)] == path[: 2 * level + 2]
    tab.close()


def test_what_is_drawn_and_said_is_what_the_library_computes(site: Path, browser: Any) -> None:
    tab, _, live = opened(browser, site / PAGE, "particles")
    tab.close()
    corners, words = toy.TOKENS.numpy(), live["sliders"][0]["words"]
    predictors = (toy.mistaken(6.0, 6), toy.unconstrained(0.2, 0))
    for number, (side, mean) in enumerate(zip(live["data"]["panels"], predictors, strict=True)):
        for level, word in enumerate(words):
            s, y, aim = plane(side, level)
            if s > 3:  # a tenth of a point is too coarse
                continue
            if s > 0.7:
                assert abs(s / float(word.removeprefix("σ/α = ")) - 1) < 0.1
                found = mean(torch.tensor(y), (torch.tensor(1.0), torch.tensor(s))).numpy()
                assert np.abs(found - aim).mean() < 0.03
            near = np.linalg.norm(y[:, None] - corners, axis=-1).min(1) < 0.1
            out = ~Outline(corners).contains_points(aim, radius=0.02)
            told = [int(n.replace(",", "")) for n in NUMBERS.findall(live["data"]["says"][level])]
            total, arrived, outside = told[3], told[2 + 3 * number], told[4 + 2 * number]
            assert abs(near.mean() - arrived / total) < 0.25  # the drawn are some of all
            assert abs(out.mean() - outside / total) < (0.25 if number else 1e-9)
        assert near.mean() == (number == 0)


def plane(side: dict[str, Any], level: int) -> Any:
    """Noise σ/α, states x/α and predictions: the drawing's units, undone by its own stars."""
    stars, dots, targets = (np.array(at(side[k], level)) for k in ("stars", "dots", "targets"))
    drawn = [np.hstack([places, np.ones((len(places), 1))]) for places in (stars, dots, targets)]
    undo = np.linalg.lstsq(drawn[0], toy.TOKENS.numpy(), rcond=None)[0]
    last = np.array(at(side["stars"], -1 + len(side["stars"][0]) // 2))  # where α is nearly 1
    ratio = np.linalg.norm(np.ptp(last, 0)) / np.linalg.norm(np.ptp(stars, 0))
    return np.sqrt(max(0, ratio**2 - 1)), drawn[1] @ undo, drawn[2] @ undo


def test_without_scripts_one_level_is_seen_whole(site: Path, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    _, figure, live = opened(context, site / PAGE, "particles")
    level = live["sliders"][0]["start"]
    for i, side in enumerate(live["data"]["panels"]):
        assert np.allclose(seen(figure, f"dots-{i}"), at(side["dots"], level), atol=0.06)
    context.close()
