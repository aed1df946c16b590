"""What a student is told: right, or what the answer was, what leads there, and what next."""

from typing import Any

import numpy as np
import pytest
import torch

from tokenspace.errors import ExerciseError
from tokenspace.press.exercises import expect


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (0.5, 0.504),
        (torch.tensor(0.5), 0.5),
        (np.array([1.0, 2.0]), torch.tensor([1.0, 2.0])),
        ("falls", "falls"),
        (np.True_, True),
        (" Falls", "falls"),
        (torch.tensor(0.5, requires_grad=True), 0.5),
    ],
)
def test_a_right_answer_is_said_to_be_right(
    got: Any, expected: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    expect("ex-one", got, expected, within=0.005, hint="none")
    assert capsys.readouterr().out == "ex-one: right.\n"


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (0.5, 0.506),
        (float("nan"), 0.5),
        ([1.0, 2.0], [1.0, 2.1]),
        ([1.0], [1.0, 1.0]),  # never broadcast
        ("rises", "falls"),
        ("falls", 0.5),
        (None, 0.5),
        (True, False),
    ],
)
def test_a_wrong_answer_is_named_with_the_next_step(got: Any, expected: Any) -> None:
    with pytest.raises(ExerciseError, match=r"^ex-one: .*Next: look at the law\.$"):
        expect("ex-one", got, expected, within=0.005, hint="look at the law.")


def test_a_known_mistake_is_recognised_and_the_answer_not_given_away() -> None:
    with pytest.raises(ExerciseError) as error:
        expect("ex-one", 0.9, 0.1357, within=0.01, mistakes={"the share below t": 0.9}, hint="turn")
    assert "your answer is 0.9," in str(error.value)
    assert "That is the share below t." in str(error.value)
    assert "0.13" not in str(error.value)


def test_a_wrong_shape_is_told() -> None:
    with pytest.raises(ExerciseError, match=r"yours has the shape \(2,\), it takes \(3,\)"):
        expect("ex-one", [1, 2], [1, 2, 3], hint="one for each token")


@pytest.mark.parametrize(
    ("got", "shown"),
    [(30522, "30522,"), (0.12345, "0.1235,"), (None, "None (is a `return` missing?),")],
)
def test_an_answer_is_shown_as_it_was_given(got: Any, shown: str) -> None:
    with pytest.raises(ExerciseError) as error:
        expect("ex-one", got, 2.0, hint="look at the law")
    assert f"your answer is {shown}" in str(error.value)


def test_in_a_run_of_the_page_a_wrong_answer_is_said_and_the_page_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOKENSPACE_RUN", "a folder")
    expect("ex-one", 0.9, 0.1, within=0.01, hint="look at the law.")
    assert capsys.readouterr().out.startswith("ex-one: your answer is 0.9, and the check finds")
