"""A published run's tables from a local Hub: repeated, swapped, missing steps; ρ on its tokens."""

import re

import pytest
import torch
from tests.sources.checkpoints import EMBED, SHARDS, random_rows, sharded, single
from tests.sources.hub_server import HubServer

from tokenspace import staircase as st
from tokenspace.errors import ParameterError, SourceError, UnreachableError
from tokenspace.staircase.pythia import STEPS

START = random_rows(300, 16, torch.float32)
END = random_rows(300, 16, torch.float32, seed=1)


def trained(t: float) -> torch.Tensor:
    """The table at share t of a run that grows from START towards END."""
    return START + 0.5 * t * END


def publish(hub: HubServer, tables: dict[int, torch.Tensor], repo: str = "org/model") -> None:
    for step, rows in tables.items():
        hub.add(repo, single({EMBED: rows}), revision=f"step{step}")


def test_a_clean_run_is_a_curve(hub):
    steps = [0, 1, 512, 1000, 4000]
    publish(hub, {s: trained(s / 4000) for s in steps})
    found = st.read_snapshots("org/model", steps[::-1])
    assert found.steps == steps
    assert not found.dropped
    assert not found.flags
    for i, s in enumerate(steps):
        assert torch.equal(found.tables[i].rows, trained(s / 4000))


def test_repeated_steps_leave_the_curve_and_say_so(hub):
    """C1: steps from the first on serve what the end of training holds."""
    steps = [0, 1, 512, 1000, 2000, 3000, 4000]
    tables = {s: trained(s / 4000) for s in steps}
    publish(hub, tables | dict.fromkeys((0, 1, 2000), tables[4000]))
    found = st.read_snapshots("org/model", steps)
    assert found.steps == [512, 1000, 3000]
    assert sorted(found.dropped) == [0, 1, 2000, 4000]
    assert "same bytes" in found.dropped[2000]
    assert "as at step 0, 1, 4000: at most one" in found.dropped[2000]


def test_a_run_of_repeats_alone_is_an_empty_curve(hub):
    publish(hub, dict.fromkeys([0, 1000, 143_000], END))
    found = st.read_snapshots("org/model", [0, 1000, 143_000])
    assert found.steps == []
    assert sorted(found.dropped) == [0, 1000, 143_000]
    assert st.next_token_alignment(found, torch.arange(3), torch.eye(3).double()).shape == (0,)


def test_a_swapped_shard_is_found_by_its_own_bytes(hub):
    """C2: of step 2000 the shard with the table is the last step's, the other is right."""
    steps = [1000, 2000, 3000, 4000]
    files = {
        s: sharded(trained(s / 4000), random_rows(300, 16, torch.float32, seed=s)) for s in steps
    }
    files[2000][SHARDS[0]] = files[4000][SHARDS[0]]
    for step, each in files.items():
        hub.add("org/model", each, revision=f"step{step}")
    found = st.read_snapshots("org/model", steps)
    assert found.steps == [1000, 3000]
    assert "same bytes (sha256" in found.dropped[2000]
    output = st.read_snapshots("org/model", steps, side="output")
    assert output.steps == steps
    assert not output.dropped


def test_a_jump_in_norm_is_flagged_where_no_hash_tells(hub):
    """C2 without the last step: 1.517, 1.306, 1.513 are the norms that were seen."""
    publish(hub, {s: START * n for s, n in zip(range(4), (1.52, 1.517, 1.306, 1.513), strict=True)})
    found = st.read_snapshots("org/model", range(4))
    assert found.steps == [0, 1, 2, 3]
    assert set(found.flags) == {2}
    assert "median row norm" in found.flags[2]


@pytest.mark.parametrize("same", [[0, 1], [0, 1, 2]])
def test_no_update_yet_is_data(hub, same):
    """C3: equal tables at the very start stay in the curve."""
    steps = [0, 1, 2, 512, 1000]
    tables = {s: trained(s / 1000) for s in steps}
    publish(hub, tables | dict.fromkeys(same, START))
    found = st.read_snapshots("org/model", steps)
    assert found.steps == steps
    assert not found.dropped
    assert set(found.flags) == set(same) - {0}
    assert found.flags[1] == "the table of step 0 still: no update seen between them"


@pytest.mark.parametrize("first", [1, 16])
def test_a_run_that_does_not_descend_from_its_step_0_is_flagged(hub, first):
    """C4: step 1 of the seed run is another initialization with its first update."""
    for repo, start in (("org/own", START), ("org/other", END)):
        publish(hub, {0: START, first: start + 1e-3, 512: start + 0.3 * END.roll(1, 0)}, repo)
    own, other = (st.read_snapshots(f"org/{name}", [0, first, 512]) for name in ("own", "other"))
    assert not own.flags
    assert set(other.flags) == {first}
    assert re.match(r"(0.99|1.0.) of the distance from step 0 that an", other.flags[first])
    assert "doesn't descend from that step 0" in other.flags[first]


def test_a_step_that_fails_is_listed_and_the_rest_goes_on(hub):
    publish(hub, {s: trained(s / 1000) for s in (0, 512, 1000)})
    hub.add("org/model", single({EMBED: random_rows(40, 16)}), revision="step600")
    bad = trained(0.7)
    bad[3, 3] = torch.nan
    hub.add("org/model", single({EMBED: bad}), revision="step700")
    hub.add("org/model", {"pytorch_model.bin": b"pickle"}, revision="step800")
    gone = sharded(START, END)
    del gone[SHARDS[0]]
    hub.add("org/model", gone, revision="step900")
    found = st.read_snapshots("org/model", [0, 256, 512, 600, 700, 800, 900, 1000])
    assert found.steps == [0, 512, 1000]
    for step, says in {
        256: "has no revision step256",
        600: r"(40, 16), that of step 0 (300, 16)",
        700: "1 of 300 rows are not finite",
        800: "Pickled weights can run code",
        900: SHARDS[0],
    }.items():
        assert says in found.dropped[step]


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("org/none", "none of 2 steps can be read. org/none: no such public model"),
        ("minilm", "none of 2 steps can be read. minilm has no revision step0"),
    ],
)
def test_a_model_without_steps_is_refused(hub, model, says):
    with pytest.raises(SourceError, match=says):
        st.read_snapshots(model, [0, 1])


def test_a_step_out_of_reach_is_not_dropped(hub, monkeypatch):
    publish(hub, {0: START, 1000: END})
    st.read_snapshots("org/model", [0])
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UnreachableError, match="org/model at step1000"):
        st.read_snapshots("org/model", [0, 1000])


def test_pythias_steps():
    assert len(STEPS) == 154
    for points in (3, 5, 24, 60):
        steps = st.revisions(points)
        assert (steps[0], steps[-1]) == (0, 143_000)
        assert len(steps) <= points
        assert set(steps) <= set(STEPS)
    logs = torch.tensor(st.revisions(10)[1:]).double().log().diff()
    assert float(logs.max() / logs.min()) < 2
    with pytest.raises(ParameterError, match="3 or more"):
        st.revisions(2)


def text_of(seed: int = 0) -> torch.Tensor:
    """A chain of 12 tokens in which neighbours on a circle are followed alike."""
    g = torch.Generator().manual_seed(seed)
    hops = torch.randint(3, (20_000,), generator=g) * 2 + 1
    return hops.cumsum(0) % 12


def test_a_run_towards_the_signature_climbs_to_it(hub):
    tokens = text_of()
    ids = st.most_frequent(tokens, 12)
    phi = st.followers(tokens, ids)
    table = random_rows(40, phi.shape[1], torch.float32)
    goal = torch.zeros(40, phi.shape[1])
    goal[ids] = 20 * phi.float()
    publish(hub, {s: table + s / 100 * goal for s in (0, 1, 10, 100, 1000)})
    found = st.read_snapshots("org/model", [0, 1, 10, 100, 1000])
    rho = st.next_token_alignment(found, ids, phi)
    assert abs(float(rho[0])) < 0.4
    assert float(rho[-1]) > 0.99
    assert bool((rho.diff() > 0).all())
    by_hand = st.alignment(st.cosine_gram(table[ids].double()), st.cosine_gram(phi))
    assert float(rho[0]) == pytest.approx(float(by_hand))
    mixed = phi[torch.randperm(12, generator=torch.Generator().manual_seed(0))]
    assert float(st.next_token_alignment(found, ids, mixed)[-1]) < 0.5


def test_ids_of_another_tokenizer_are_refused(hub):
    publish(hub, {0: START, 1: END})
    found = st.read_snapshots("org/model", [0, 1])
    ids = torch.tensor([1, 2, 300])
    with pytest.raises(ParameterError, match="3 ids for tables of 300 rows"):
        st.next_token_alignment(found, ids, torch.eye(3).double())
