"""The parameters cell is read as it is written, and refuses what it can't mean."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenspace.errors import ParameterError
from tokenspace.press.parameters import Parameter, read, resolve, split
from tokenspace.press.sync import twin

CELL = """\
from typing import Literal

seed: int = 0
rate: float = 1
name: str = "a=b"  # papermill's reader drops a line with a second `=`
note: str | None = None
sampler: Literal["euler", "heun"] = "euler"
tables: list = ["minilm", "glove"]
cuts: list[float] = [0.5, 1]
fast: bool = False
limits: dict = {"a": 1}
k = 2
"""


def declared(cell: str = CELL) -> dict[str, Parameter]:
    return read(twin(f'# %% tags=["parameters"]\n{cell}'), "hub/toy")


def given_words(*words: str, cell: str = CELL) -> dict[str, Any]:
    return resolve(declared(cell), split(words), "hub/toy", origin="given")


def test_every_declaration_is_read() -> None:
    """Unions, `Literal`, a second `=`: the lines that papermill's own reader loses."""
    defaults = {name: parameter.default for name, parameter in declared().items()}
    scope: dict[str, Any] = {}
    exec(CELL, scope)
    assert defaults == {name: scope[name] for name in defaults}
    assert len(defaults) == 10


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("seed=7", 7),
        ("rate=1e-3", 1e-3),
        ("rate=2", 2.0),
        ("name=1e-3", "1e-3"),
        ("name=a=b|c", "a=b|c"),
        ("name=", ""),
        ("note=none", None),
        ("note=x", "x"),
        ("sampler=heun", "heun"),
        ('tables=["minilm"]', ["minilm"]),
        ("tables=['minilm', 'glove']", ["minilm", "glove"]),
        ("tables=[]", []),
        ("cuts=[1, 0.25]", [1.0, 0.25]),
        ("fast=true", True),
        ("fast=no", False),
        ('limits={"b": [1]}', {"b": [1]}),
        ("k=3", 3),
    ],
)
def test_a_word_is_read_by_the_declared_type(word: str, value: Any) -> None:
    """papermill#701 and G3: `-p name 1e-3` must stay text, `rate` must become a number."""
    (got,) = given_words(word).values()
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("seed=1.5", "seed = '1.5' is not int"),
        ("seed=true", "seed = 'true' is not int"),
        ("rate=banana", "rate = 'banana' is not float"),
        ("fast=maybe", "fast = 'maybe' is not bool"),
        ("sampler=rk4", "sampler = 'rk4' is not Literal['euler', 'heun']"),
        ("tables=minilm", """tables = 'minilm' is not list[str], such as tables='["minilm"""),
        ("tables=[1]", "tables = '[1]' is not list[str]"),
        ('cuts=["a"]', "is not list[float]"),
        ("limits=[1]", "limits = '[1]' is not dict"),
        ("limits={'a': {1, 2}}", "is not dict"),  # a set can't be told apart from run to run
        ("tabels=['minilm']", "unknown parameter 'tabels'; did you mean 'tables'?"),
        ("kk=5", "unknown parameter 'kk'"),
        ("kk", "-p 'kk': write NAME=VALUE"),
        ("1x=2", "-p '1x=2': write NAME=VALUE"),
        ("seed=1 seed=2", "-p seed is given twice"),
        ("seed=x rate=y", "seed = 'x' is not int; rate = 'y' is not float"),  # all of it at once
    ],
)
def test_a_wrong_value_is_refused_by_name(word: str, message: str) -> None:
    with pytest.raises(ParameterError) as error:
        given_words(*(word.split(" ") if word.count("=") == 2 else [word]))
    assert message in str(error.value)
    if "-p" not in message:  # what is known
        assert "tables: list[str] = ['minilm', 'glove']" in str(error.value)


@pytest.mark.parametrize(
    ("values", "fine"),
    [
        ({"rate": "1e-3"}, True),  # YAML 1.1 reads 1e-3 as text
        ({"rate": 3}, True),
        ({"name": False}, False),  # and `no` as false
        ({"seed": True}, False),
        ({"seed": 1.0}, False),
        ({"tables": [1]}, False),
        ({"cuts": [1, 2]}, True),
        ({"note": None}, True),
        ({"seed": None}, False),
    ],
)
def test_values_of_a_profile_are_checked_too(values: dict[str, Any], fine: bool) -> None:
    if fine:
        assert resolve(declared(), values, "hub/toy", origin="profile smoke")
    else:
        with pytest.raises(ParameterError, match=r"hub/toy \(profile smoke\)"):
            resolve(declared(), values, "hub/toy", origin="profile smoke")


@given(st.lists(st.text(st.characters(codec="utf-8")), max_size=4), st.integers(), st.floats())
def test_what_python_writes_is_read_back(tables: list[str], seed: int, rate: float) -> None:
    cell = "tables: list[str] = []\nseed: int = 0\nrate: float = 0.0"
    got = given_words(f"tables={tables!r}", f"seed={seed!r}", f"rate={rate!r}", cell=cell)
    assert got["tables"] == tables
    assert got["seed"] == seed
    assert repr(got["rate"]) == repr(rate)


@pytest.mark.parametrize(("cells", "said"), [(0, "no cell"), (2, "2 cells")])
def test_a_notebook_has_one_cell_of_parameters(cells: int, said: str) -> None:
    """papermill#245: values injected at the top, then overwritten, exit 0."""
    text = "# %%\nk = 2\n\n" + '# %% tags=["parameters"]\nk: int = 2\n\n' * cells
    with pytest.raises(ParameterError, match=f'hub/toy has {said} tagged "parameters"'):
        read(twin(text), "hub/toy")


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("k: int = 1 + 1", "default of 'k' is not a literal: 1 \\+ 1"),
        ("k: int", "only `name: type = value`"),
        ("a, b = 1, 2", "only `name: type = value`"),
        ("a = b = 1", "only `name: type = value`"),
        ("print(1)", "only `name: type = value`"),
        ("k: int = 'x'", "k = 'x' is not int"),
        ("k: Tensor = 1", "type Tensor can't be checked"),
        ("k = None", "k: type NoneType can't be checked"),
        ("k: int = 1\nk: int = 2", "declared twice"),
        ("k: int = (", "line 1"),
    ],
)
def test_a_cell_that_is_more_than_declarations_is_refused(cell: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        declared(cell)
