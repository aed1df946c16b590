"""The chess board whose squares can be chosen, with scripts and without."""

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.site

PAGE = "notebooks/curvature/chess.html"


def value(board: Any, square: str) -> str:
    return board.locator(f"td[data-square={square}]").inner_text()


def test_squares_are_chosen_by_mouse_and_by_keys(site: Path, browser: Any) -> None:
    tab = browser.new_page()
    tab.goto((site / PAGE).as_uri())
    board = tab.locator("table.ts-board").first
    matrix = json.loads(board.get_attribute("data-matrix"))
    name, chosen = board.locator("output"), board.locator("button[aria-pressed=true]")
    assert name.inner_text() == "e4"
    board.locator("td[data-square=a1] button").click()
    assert name.inner_text() == "a1"
    assert value(board, "b2") == str(matrix[0][9])
    for key, square in [("ArrowUp", "a2"), ("ArrowRight", "b2"), ("ArrowDown", "b1")]:
        chosen.press(key)
        assert name.inner_text() == square
    chosen.press("ArrowDown")  # off the board
    assert name.inner_text() == "b1"
    assert value(board, "a1") == str(matrix[1][0])
    assert board.locator("button[tabindex='0']").count() == 1
    tab.close()


def test_without_scripts_a_board_of_one_square_is_seen(site: Path, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto((site / PAGE).as_uri())
    board = tab.locator("table.ts-board").first
    matrix = json.loads(board.get_attribute("data-matrix"))
    shown = [value(board, square) for square in ("a1", "h8")]
    assert shown == ["–" if x is None else str(x) for x in (matrix[28][0], matrix[28][63])]
    assert board.locator("button").count() == 0
    context.close()
