"""What runs would cost: every formula, what fits a machine, and the smallest change that would."""

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from tokenspace.cli import app
from tokenspace.errors import ParameterError
from tokenspace.press import layout, parameters
from tokenspace.press.costs import cost, costs_page, fit, forecast, formula, machine
from tokenspace.press.costs.machine import Machine
from tokenspace.press.plan import plans, profile_values, profiles
from tokenspace.press.sweeps.sweep_spec import read, sweeps
from tokenspace.press.sync import twin
from tokenspace.sources.sizes import Sizes

Put = Callable[..., Path]
ROOT = layout.find_root(Path(__file__).parent)
COSTS = cost.read(ROOT)
NAMES = layout.notebooks(ROOT)
SIZES = Sizes(network=False)
DECLARED = {
    name: parameters.read(twin(layout.source(ROOT, name).read_text()), name) for name in NAMES
}
GIVEN = {"cores", "cuda"}  # names that every formula may use
LAPTOP = Machine("a laptop", 4, 53.0, 16.0, 8.0, 100.0)

TOY = """\
reference: {name: one core, gflops: 100, gigabytes: 8, second_core: 0.5}
gpu: {name: a GPU, gigabytes: 8, kinds: {fast: {tflops: 10, used: 0.5, for: products}}}
notebooks:
  hub/toy:
    names: {pairs: rows**2}
    seconds:
      - {what: start, each: 2}
      - {what: search, each: 1.0e-3, of: pairs * len(tables), gpu: fast, threads: true}
    megabytes:
      - {what: Python, each: 100}
      - {what: tables, each: 1, of: rows * len(tables), gpu: fast}
    disk: [{what: results, each: 10}]
    tables: tables
    shrink: {rows: 10, tables: list, device: [cpu]}
"""
PAGE = 'rows: int = 1000\ntables: list = ["minilm", "smollm2"]\ndevice: str = "auto"'
VALUES = {"rows": 1000, "tables": ["minilm", "smollm2"], "device": "auto"}


@pytest.fixture
def toy(root: Path, put: Put) -> cost.Costs:
    put("hub/toy", PAGE, "")
    (root / "notebooks" / "costs.yaml").write_text(TOY)
    return cost.read(root)


def cost_of(name: str, values: dict[str, Any], there: Machine | None = None) -> cost.Estimate:
    return cost.estimate(COSTS, name, values, there or COSTS.machine(), SIZES)


@cache
def values_at(name: str, profile: str) -> dict[str, Any]:
    given = profile_values(ROOT, profile).get(name, {})
    return defaults(name) | parameters.resolve(DECLARED[name], given, name, origin=profile)


def defaults(name: str) -> dict[str, Any]:
    return {p.name: p.default for p in DECLARED[name].values()}


def test_every_notebook_has_its_costs() -> None:
    assert set(COSTS.notebooks) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_costs_name_parameters_that_exist(name: str) -> None:
    about = COSTS.of(name)
    known = set(DECLARED[name]) | set(about.get("names", {})) | set(SIZES.functions()) | GIVEN
    assert formula.names_of(cost.formulas(about)) <= known
    for parameter, least in about["shrink"].items():
        kind = DECLARED[name][parameter].kind.name
        assert kind == {int: "int", str: "list", list: "str"}[type(least)]


@pytest.mark.parametrize("name", NAMES)
def test_costs_are_numbers_at_every_profile_on_every_kind_of_machine(name: str) -> None:
    for profile in profiles(ROOT):
        values = values_at(name, profile)
        for there in (LAPTOP, COSTS.gpu_machine(LAPTOP)):
            found = cost_of(name, values, there)
            assert all(math.isfinite(s) and s >= 0 for s in found.seconds.values())
            assert found.time > 1
            assert 0.1 < found.memory < 1000
            assert found.gpu_memory < 1000
    smoke, paper = (values_at(name, p) for p in ("smoke", "paper"))
    assert cost_of(name, smoke).time < cost_of(name, paper).time


@pytest.mark.parametrize("name", sorted(sweeps(ROOT)))
def test_costs_are_numbers_at_every_point_of_a_shipped_sweep(name: str) -> None:
    for p in read(sweeps(ROOT)[name]).plans(ROOT):
        found = cost_of(p.notebook, p.parameters)
        assert 1 < found.time < 1e9
        assert 0.1 < found.memory < 1000


def test_nothing_is_downloaded_at_the_profiles_that_need_no_network() -> None:
    for name, profile in itertools.product(NAMES, ("smoke", "classroom")):
        assert not cost_of(name, values_at(name, profile)).downloads


def test_a_model_is_downloaded_whole_and_held_once_a_table_alone() -> None:
    model = "Qwen/Qwen2.5-32B-Instruct"
    values = defaults("curvature/connection") | {"model": model, "sharded": True}
    found = cost_of("curvature/connection", values)
    (item,) = found.downloads
    assert item.gigabytes == pytest.approx(65.5, rel=0.01)
    assert found.memory > 65.5
    on_gpu = cost_of("curvature/connection", values, COSTS.gpu_machine(LAPTOP))
    assert on_gpu.memory < 2 < 65.5 < on_gpu.gpu_memory
    (table,) = cost_of("hub/models", defaults("hub/models") | {"tables": [model]}).downloads
    assert table.gigabytes == pytest.approx(152064 * 5120 * 2 / 1e9)


WORK = [
    (name, parameter)
    for name in NAMES
    for parameter in sorted(formula.names_of(cost.formulas(COSTS.of(name))) & set(DECLARED[name]))
    if DECLARED[name][parameter].kind.name == "int"
    and parameter not in ("whole", "workers")  # ways of working, not amounts of work
]


@given(st.sampled_from(WORK), st.integers(1, 5000), st.integers(1, 5000))
@settings(max_examples=150, deadline=None)
def test_more_never_costs_less(case: tuple[str, str], one: int, other: int) -> None:
    name, parameter = case
    low, high = (
        cost_of(name, defaults(name) | {parameter: value}) for value in sorted((one, other))
    )
    assert low.time <= high.time * (1 + 1e-12)
    assert low.memory <= high.memory * (1 + 1e-12)


def test_a_toys_cost_is_what_its_formulas_say(toy: cost.Costs) -> None:
    def at(there: Machine) -> cost.Estimate:
        return cost.estimate(toy, "hub/toy", VALUES, there, SIZES)

    here = at(toy.machine())
    assert here.seconds == {"start": 2, "search": pytest.approx(2000)}
    assert (here.memory, here.gpu_memory, here.disk) == (pytest.approx(2.1), 0, 0.01)
    quick = at(replace(toy.machine(5), gflops=200.0))  # twice as fast, and three times in search
    assert quick.seconds == {"start": 1, "search": pytest.approx(2000 / 6)}
    on_gpu = at(toy.gpu_machine(toy.machine()))  # 10 TFLOP/s, half of them used: 50 times a core
    assert on_gpu.seconds == {"start": 2, "search": pytest.approx(40)}
    assert (on_gpu.memory, on_gpu.gpu_memory) == (pytest.approx(0.1), pytest.approx(2.0))


@given(st.integers(10, 5000), st.floats(0.12, 3.0))
@settings(max_examples=300, deadline=None)
def test_the_largest_value_that_fits_is_found(rows: int, memory: float) -> None:
    costs = cost.Costs(
        {"name": "", "gflops": 1, "gigabytes": 1, "second_core": 0},
        {"name": "", "gigabytes": 1, "kinds": {}},
        {"a/b": {"megabytes": [{"what": "", "each": 1, "of": "9 + rows"}], "shrink": {"rows": 9}}},
    )  # fmt: skip
    there = Machine("", 1, 1.0, memory, memory, 1.0)
    values = {"rows": rows}
    needed = cost.estimate(costs, "a/b", values, there, SIZES)
    found = fit.smallest_change(costs, "a/b", values, there, SIZES)
    if not fit.problems(needed, there):
        return
    fitting = [k for k in range(9, rows) if (9 + k) / 1e3 <= memory]
    assert found == {"rows": max(k for k in fitting if k < 10 or k % 10 ** (len(str(k)) - 2) == 0)}


@pytest.mark.parametrize(
    ("memory", "gpu", "device", "change"),
    [
        (1.5, 0.0, "auto", {"rows": 700}),  # 100 + 2 · 700 MB; one table would be a larger loss
        (0.9, 0.0, "auto", {"rows": 400}),
        (0.1, 0.0, "auto", None),
        (3.0, 1.0, "auto", {"rows": 500}),
        (3.0, 0.01, "auto", {"device": "cpu"}),
    ],
)
def test_the_smallest_change_of_one_parameter(
    toy: cost.Costs, memory: float, gpu: float, device: str, change: dict[str, Any] | None
) -> None:
    there = Machine("", 1, 100.0, memory, memory, 10.0, gpu)
    values = VALUES | {"device": device}
    assert fit.problems(cost.estimate(toy, "hub/toy", values, there, SIZES), there)
    assert fit.smallest_change(toy, "hub/toy", values, there, SIZES) == change
    if change:
        needed = cost.estimate(toy, "hub/toy", values | change, there, SIZES)
        assert not fit.problems(needed, there)


def test_a_table_goes_where_rows_can_not(toy: cost.Costs) -> None:
    about = {**toy.of("hub/toy"), "shrink": {"tables": "list"}}
    there = Machine("", 1, 100.0, 1.2, 1.2, 10.0)
    one = replace(toy, notebooks={"hub/toy": about})
    assert fit.smallest_change(one, "hub/toy", VALUES, there, SIZES) == {"tables": ["smollm2"]}


@pytest.mark.parametrize(
    ("memory", "model"), [(30.0, "Qwen/Qwen2.5-7B-Instruct"), (4.0, "Qwen/Qwen2.5-0.5B-Instruct")]
)
def test_a_model_too_large_is_replaced_by_the_likest_that_fits(memory: float, model: str) -> None:
    there = Machine("", 4, 50.0, memory, memory, 1000.0)
    (found,) = forecast.forecasts(ROOT, ["curvature/connection"], "paper", [], None, SIZES, there)
    assert found.change == {"model": model}
    said = found.refusal()
    assert f"of memory, and this machine has {memory:.2g}" in said
    assert said.endswith(f"Smallest change that fits: -p model={model}")
    assert f"would fit   -p model={model}" in "\n".join(found.lines())


def test_a_plan_says_what_is_assumed_of_a_gpu() -> None:
    (found,) = forecast.forecasts(ROOT, ["curvature/chess"], "paper", [], None, SIZES, LAPTOP)
    text = "\n".join(found.lines())
    assert "An estimate, never measured: it assumes one H100-class GPU" in text
    assert "at 30% of 990 TFLOP/s" in text
    assert found.record()["assumed_gpu"]["seconds"] < found.record()["seconds"]


def test_notebooks_side_by_side_share_the_cores() -> None:
    both = forecast.forecasts(ROOT, NAMES[:2], "smoke", [], None, SIZES, LAPTOP)
    assert [each.machine.cores for each in both] == [2, 2]
    needed = [each.here for each in both]
    longest = forecast.duration(max(each.time for each in needed))
    assert forecast.together(needed, 2) == (
        f"2 notebooks, 2 at once: about {longest}, nothing to download"
    )


def test_a_sweep_says_first_what_is_left_of_it(
    root: Path, toy: cost.Costs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        forecast, "this_machine", lambda *_, **__: Machine("", 4, 100.0, 9.0, 9.0, 10.0)
    )
    runs = plans(root, "hub/toy", [{"rows": 1000}, {"rows": 100}, {"rows": 10}])
    one, two, three = (2 + 1e-3 * rows**2 * 2 / 1.5 for rows in (1000, 100, 10))
    said = forecast.sweep_total(root, runs, 2, SIZES)  # two cores each
    assert said.startswith("3 runs, 2 at once: about")
    assert forecast.duration(max(one, (one + two + three) / 2)) in said
    for p in runs:
        p.folder.mkdir(parents=True)
    assert forecast.sweep_total(root, runs, 2, SIZES) == ""


def test_the_command_refuses_with_code_2_and_prints_json(
    root: Path, toy: cost.Costs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setattr(
        forecast, "this_machine", lambda *_, **__: Machine("", 1, 100.0, 1.0, 1.0, 10.0)
    )
    done = CliRunner().invoke(app, ["plan", "hub/toy", "--json"])
    assert done.exit_code == 2
    assert "needs about 2.1 GB of memory, and this machine has 1.0 GB" in done.stderr
    assert done.stderr.rstrip().endswith("-p rows=450")
    (found,) = json.loads(done.stdout)
    assert (found["fits"], found["smallest_change"]) == (False, {"rows": 450})
    smaller = CliRunner().invoke(app, ["plan", "hub/toy", "-p", "rows=450"])
    assert smaller.exit_code == 0
    assert "time here   about 6.8 min (3.4 min to 14 min), on one core" in smaller.stdout
    assert not (root / "build").exists()


def test_this_machine_is_looked_at(tmp_path: Path) -> None:
    here = machine.this_machine(tmp_path / "not" / "there", device="cpu")
    assert 0 < here.free <= here.memory
    assert here.disk > 0
    assert here.gflops > 0.1
    assert here.gpu_memory == 0


@pytest.mark.parametrize(
    "text",
    ["(1).real", "lambda: 1", "__import__('os')", "[].append(1)", "f'{1}'", "open('x')", "1 +"],
)
def test_a_formula_only_computes(text: str) -> None:
    with pytest.raises(ParameterError):
        formula.evaluate(text, {"n": 1})


def test_a_slip_in_a_formula_is_named() -> None:
    with pytest.raises(ParameterError, match="unknown name 'quereis'; did you mean 'queries'"):
        formula.evaluate("2 * quereis", {"queries": 1})
    with pytest.raises(ParameterError, match="division by zero"):
        formula.evaluate("1 / n", {"n": 0})


@pytest.mark.parametrize(
    ("slip", "said"),
    [
        ("{what: start, each: 2, times: 3}", "unknown ['times']"),
        ("{what: start, each: 2, gpu: slow}", "no GPU kind 'slow'"),
    ],
)
def test_a_slip_in_the_file_of_costs_is_named(
    root: Path, toy: cost.Costs, slip: str, said: str
) -> None:
    path = root / "notebooks" / "costs.yaml"
    path.write_text(TOY.replace("{what: start, each: 2}", slip))
    with pytest.raises(ParameterError) as error:
        cost.read(root)
    assert said in str(error.value)


def test_runs_are_set_beside_their_plan(
    root: Path, toy: cost.Costs, monkeypatch: pytest.MonkeyPatch
) -> None:
    footer = {"threads": "1", "device": "cpu", "peak memory": "2.10 GB"}
    about = {"profile": "classroom", "key": "0123456789", "seconds": 1001.0, "footer": footer}
    row = costs_page.compare(toy, "hub/toy", about, VALUES, SIZES)
    assert row is not None
    assert (row["planned_seconds"], row["planned_memory"]) == (2002.0, 2.1)
    (line,) = costs_page.check_lines([row])
    assert "2002.0 /  1001.0 s = 2.00" in line
    assert "memory  2.10 /  2.10 GB = 1.00" in line
    assert costs_page.compare(toy, "hub/toy", about, {"rows": 1}, SIZES) is None  # an older page


def test_the_books_page_has_every_notebook_at_both_profiles_and_its_run(tmp_path: Path) -> None:
    name, footer = NAMES[0], {"threads": "1", "device": "cpu", "peak memory": "1.00 GB"}
    about = {"profile": "smoke", "key": "0123456789", "seconds": 1234.0, "footer": footer}
    (tmp_path / "environment.json").write_text(json.dumps(about))
    (tmp_path / "params.yaml").write_text(json.dumps(values_at(name, "smoke")))
    text = costs_page.page(ROOT, {name: tmp_path}, SIZES)
    for each in layout.chapters(ROOT):
        assert text.count(f"{{doc}}`/notebooks/{each}`") == 2
    (row,) = (line for line in text.splitlines() if line.startswith(f"| {name} | smoke"))
    assert "| 21 min |" in row
    assert "estimates, not measurements" in text
    assert costs_page.page(ROOT, {name: tmp_path}, SIZES) == text  # nothing of this machine in it
