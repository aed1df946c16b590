"""Runs: what is refused, what is kept, what is said when a cell, a kernel or a disk gives out."""

import errno
import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
import yaml
from dask.system import cpu_count

from tokenspace.errors import ParameterError, RunError
from tokenspace.press import job, results
from tokenspace.press.runner import finished, run_notebooks

Put = Callable[..., Path]


def left_behind(root: Path) -> list[str]:
    """Everything below build/ except finished runs and failures that were kept."""
    runs = root / "build" / "runs"
    return [str(p.relative_to(runs)) for p in runs.rglob("*") if p.name.startswith(".")]


def test_a_run_leaves_what_the_book_needs(
    root: Path, put: Put, claim: dict[str, Any], claiming: str
) -> None:
    put("hub/toy", "seed: int = 0\nname: str = 'x'", "print(name, seed)", claiming)
    (root / "notebooks" / "profiles" / "smoke.yaml").write_text("hub/toy: {seed: 3}")
    (run,) = run_notebooks(["hub/toy"], root=root, profile="smoke", given={"name": "1e-3"})
    assert run.folder.parent == root / "build" / "runs" / "hub" / "toy"
    assert sorted(p.name for p in run.folder.iterdir()) == [
        *("claims.json", "environment.json", "executed.ipynb", "params.yaml"),
    ]
    executed = nbformat.read(run.folder / "executed.ipynb", as_version=4)
    nbformat.validate(executed)
    assert executed.cells[3].outputs[0].text == "1e-3 3\n"
    assert executed.cells[2].id == "injected-parameters"
    assert yaml.safe_load((run.folder / "params.yaml").read_text()) == {"seed": 3, "name": "1e-3"}
    about = json.loads((run.folder / "environment.json").read_text())
    assert about["command"] == "tokenspace run hub/toy --profile smoke -p name=1e-3"
    assert about["commit"] == "unknown"  # no repository of git
    assert about["versions"]["tokenspace"]
    assert run.claims() == [
        {
            **claim,
            "part": "hub",
            "notebook": "hub/toy",
            "profile": "smoke",
            "cell": executed.cells[4].id,
        }
    ]
    assert str(root) not in (run.folder / "executed.ipynb").read_text()
    assert left_behind(root) == []


def test_nothing_is_run_twice_and_one_change_runs_one_notebook(
    root: Path, put: Put, capsys: pytest.CaptureFixture[str]
) -> None:
    put("hub/a", "k: int = 1", "print(k)")
    changed = put("hub/b", "k: int = 1", "print(k)")
    first = run_notebooks(["hub/a", "hub/b"], root=root)
    again = run_notebooks(["hub/a", "hub/b"], root=root)
    assert [r.cached for r in first + again] == [False, False, True, True]
    assert [r.folder for r in first] == [r.folder for r in again]
    assert "hub/a: unchanged since it was last run" in capsys.readouterr().err
    changed.write_text(changed.read_text().replace("print(k)", "print(-k)"))
    assert finished(root, "hub/b") is None
    assert [r.cached for r in run_notebooks(["hub/a", "hub/b"], root=root)] == [True, False]
    assert finished(root, "hub/b") is not None


def test_force_runs_again_in_the_same_place(root: Path, put: Put) -> None:
    put("hub/toy", "k: int = 1", "import time; print(time.time_ns())")
    (first,) = run_notebooks(["hub/toy"], root=root)
    text = (first.folder / "executed.ipynb").read_text()
    (again,) = run_notebooks(["hub/toy"], root=root, force=True)
    assert (again.folder, again.cached) == (first.folder, False)
    assert (again.folder / "executed.ipynb").read_text() != text
    assert left_behind(root) == []


def test_notebooks_run_at_the_same_time_and_share_the_cores(
    root: Path, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits for the other: one after the other, both would give up."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    meet = (
        "import os, pathlib, time\n"
        f"here = pathlib.Path({str(root)!r})\n"
        "(here / me).touch()\n"
        "for _ in range(600):\n"
        "    if (here / other).exists(): break\n"
        "    time.sleep(0.1)\n"
        "else: raise TimeoutError(other)\n"
        "print(os.environ['OMP_NUM_THREADS'], os.environ['TQDM_DISABLE'])"
    )
    put("hub/a", "me: str = 'a.here'\nother: str = 'b.here'", meet)
    put("hub/b", "me: str = 'b.here'\nother: str = 'a.here'", meet)
    for run in run_notebooks(["hub/a", "hub/b"], root=root, jobs=2):
        executed = nbformat.read(run.folder / "executed.ipynb", as_version=4)
        assert executed.cells[-1].outputs[0].text == f"{max(1, cpu_count() // 2)} 1\n"


def test_a_failed_cell_is_named_and_what_ran_is_kept(root: Path, put: Put) -> None:
    mended = f"import os; 1 / os.path.exists({str(root / 'data')!r})"
    put("hub/toy", "k: int = 0", "print('before')", mended, "print('after')")
    put("hub/fine", "k: int = 1", "print(k)")
    with pytest.raises(RunError) as error:
        run_notebooks(["hub/toy", "hub/fine"], root=root)
    message = job.COLOUR.sub("", str(error.value))
    assert error.value.exit_code == 1
    assert message.startswith(f"hub/toy, cell 4 ({mended!r}) failed")
    assert "ZeroDivisionError: division by zero" in message
    (kept,) = (root / "build" / "runs" / "hub" / "toy" / "failed").iterdir()
    assert message.endswith(f"kept as far as it got: {kept / 'executed.ipynb'}")
    outputs = [c.get("outputs") for c in nbformat.read(kept / "executed.ipynb", 4).cells]
    assert any(o and o[0].get("text") == "before\n" for o in outputs)
    assert finished(root, "hub/toy") is None
    assert finished(root, "hub/fine") is not None  # one failure stops no other notebook
    (root / "data").touch()
    run_notebooks(["hub/toy"], root=root)
    assert not kept.exists()  # mended, and forgotten
    assert left_behind(root) == []


def test_an_error_that_is_shown_on_purpose_is_no_failure(root: Path, put: Put) -> None:
    path = put("hub/toy", "k: int = 0", "1 / k", "print('after')")
    text = path.read_text().replace("# %%\n1 / k", '# %% tags=["raises-exception"]\n1 / k')
    path.write_text(text)
    (run,) = run_notebooks(["hub/toy"], root=root)
    executed = nbformat.read(run.folder / "executed.ipynb", as_version=4)
    assert executed.cells[2].outputs[0].ename == "ZeroDivisionError"
    assert executed.cells[3].outputs[0].text == "after\n"


def test_a_run_that_went_without_a_source_is_made_again(root: Path, put: Put) -> None:
    note = "open(os.environ['TOKENSPACE_RUN'] + '/unreached.txt', 'w').close()"
    missing = f"import os\nif not os.path.exists({str(root / 'back')!r}): {note}"
    put("hub/toy", "k: int = 0", missing)
    run_notebooks(["hub/toy"], root=root)
    assert finished(root, "hub/toy") is None
    (root / "back").touch()
    assert [run_notebooks(["hub/toy"], root=root)[0].cached for _ in range(2)] == [False, True]


def test_two_claims_with_one_id_are_refused(root: Path, put: Put, claiming: str) -> None:
    put("hub/toy", "k: int = 0", claiming, claiming)
    with pytest.raises(RunError, match="two claims have the id 'toy'"):
        run_notebooks(["hub/toy"], root=root)


def test_the_library_of_another_clone_is_refused(root: Path, put: Put) -> None:
    put("hub/toy", "k: int = 0")
    (root / "lib" / "tokenspace").mkdir(parents=True)
    with pytest.raises(RunError, match=f"notebooks of {root} would run on the library in") as error:
        run_notebooks(["hub/toy"], root=root)
    assert error.value.exit_code == 2
    assert str(root / "lib") in str(error.value)


def test_time_runs_out_for_the_notebook_as_a_whole(root: Path, put: Put) -> None:
    """papermill#125: no limit; nbclient's is for one cell, and this has thirty short ones."""
    put("hub/toy", "k: int = 0", *["import time; time.sleep(1)"] * 30)
    with pytest.raises(RunError, match=r"hub/toy, cell \d+: time is up after 3 s") as error:
        run_notebooks(["hub/toy"], root=root, timeout=3.0)
    assert error.value.exit_code == 124
    assert left_behind(root) == []


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("os.kill(os.getpid(), 9)", "killed by SIGKILL; most often the machine ran out of memory"),
        ("os.write(2, b'bad_alloc'); os._exit(3)", "its process ended with code 3"),
    ],
)
def test_a_dead_kernel_is_explained(root: Path, put: Put, cell: str, said: str) -> None:
    put("hub/toy", "k: int = 0", "print('before')", f"import os; {cell}")
    with pytest.raises(RunError) as error:
        run_notebooks(["hub/toy"], root=root)
    assert f"hub/toy, cell 4: the kernel died, {said}" in str(error.value)
    (kept,) = (root / "build" / "runs" / "hub" / "toy" / "failed").glob("*/executed.ipynb")
    assert nbformat.read(kept, 4).cells[2].outputs[0].text == "before\n"
    assert ("bad_alloc" in str(error.value)) == ("bad_alloc" in cell)  # its last words
    assert left_behind(root) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_disk_that_takes_no_more_leaves_nothing_half_written(
    root: Path, put: Put, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    put("hub/toy", "k: int = 0")
    monkeypatch.setattr(results, "write", full)
    with pytest.raises(RunError) as error:
        run_notebooks(["hub/toy"], root=root)
    assert f"can't write below {root}/build/runs/hub/toy: {os.strerror(number)}" in str(error.value)
    assert not list((root / "build" / "runs" / "hub" / "toy").iterdir())


def test_half_done_folders_of_dead_processes_are_swept(root: Path, put: Put) -> None:
    put("hub/toy", "k: int = 0")
    folder = root / "build" / "runs" / "hub" / "toy"
    here = f".0123.{platform.node()}"
    dead, alive = folder / f"{here}.4194304", folder / f"{here}.1"  # beyond Linux's largest; init
    elsewhere = folder / ".0123.another-machine.4194304"  # which may well be alive there
    for each in (dead, alive, elsewhere):
        each.mkdir(parents=True)
    run_notebooks(["hub/toy"], root=root)
    assert not dead.exists()
    assert alive.exists()
    assert elsewhere.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"given": {"kk": "5"}}, "unknown parameter 'kk'; did you mean 'k'"),
        ({"given": {"k": "x"}}, "k = 'x' is not int"),
        ({"device": "cpu"}, "unknown parameter 'device'"),
        ({"device": "tpu"}, "device is 'tpu'; use auto, cpu or cuda"),
        ({"profile": "clasroom"}, "no profile 'clasroom'; did you mean 'classroom'"),
        ({"profile": "wrong"}, "wrong.yaml: no notebook 'hub/toi'; did you mean 'hub/toy'"),
        ({"profile": "twice"}, "twice.yaml: line 3 has k again: keep one"),
        ({"profile": "odd"}, "odd.yaml: must map notebooks to parameters with values"),
        ({"profile": "typo"}, r"hub/toy \(profile typo\): unknown parameter 'kk'"),
    ],
)
def test_what_cannot_be_honoured_is_refused_before_anything_starts(
    root: Path, put: Put, options: dict[str, Any], message: str
) -> None:
    put("hub/toy", "k: int = 0", "print(k)")
    profiles = {"wrong": "hub/toi: {k: 1}", "odd": "hub/toy: [1]", "typo": "hub/toy: {kk: 1}"}
    profiles["twice"] = "hub/toy:\n  k: 1\n  k: 2"
    for name, text in profiles.items():
        (root / "notebooks" / "profiles" / f"{name}.yaml").write_text(text)
    with pytest.raises(ParameterError, match=message):
        run_notebooks(["hub/toy"], root=root, **options)
    assert not (root / "build").exists()


@pytest.mark.parametrize("name", ["hub/toy", "notebooks/hub/toy.py", "notebooks/hub/toy.ipynb"])
def test_a_notebook_may_be_named_by_its_path(root: Path, put: Put, name: str) -> None:
    put("hub/toy", "k: int = 0")
    assert finished(root, name) is None


@pytest.mark.parametrize(
    "header",
    [
        "jupyter:\n#   kernelspec:\n#     name: my-env",  # no language either: jupytext#714
        "jupyter:\n#   jupytext:\n#     cell_metadata_filter: -all",  # would drop the tag
    ],
)
def test_a_header_of_the_authors_own(root: Path, put: Put, header: str) -> None:
    """papermill#352: the notebook names a kernel that only its author has."""
    path = put("hub/toy", "k: int = 1", "print(k)")
    path.write_text(f"# ---\n# {header}\n# ---\n\n{path.read_text()}")
    (run,) = run_notebooks(["hub/toy"], root=root, given={"k": 2}, quiet=True)
    executed = nbformat.read(run.folder / "executed.ipynb", as_version=4)
    kernel = executed.metadata.kernelspec
    assert (kernel.name, kernel.language) == ("python3", "python")
    assert executed.cells[-1].outputs[0].text == "2\n"
