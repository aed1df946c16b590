"""What is random depends on its seed, its step and its use, on every machine alike."""

import hashlib
from collections import Counter

import torch

from tokenspace.nn.seeds import draw_windows, generator, seed_of, step_generator


def test_a_seed_is_the_digest_of_its_parts():
    raw = hashlib.sha256(b"3 14 noise").hexdigest()
    assert seed_of(3, 14, "noise") == int(raw[:14], 16)
    assert generator(3, 14, "noise").initial_seed() == seed_of(3, 14, "noise")


def test_no_two_seeds_or_steps_share_a_generator():
    for of in (step_generator, generator):
        seeds = {of(seed, step).initial_seed() for seed in range(8) for step in range(50)}
        assert len(seeds) == 8 * 50


def test_windows_begin_at_every_place_equally_often():
    drawn = draw_windows(torch.arange(10), 4, 7000, generator("places"))
    assert bool((drawn.diff(dim=1) == 1).all())
    places = Counter(drawn[:, 0].tolist())
    assert sorted(places) == list(range(7))  # the last window too
    assert max(abs(count - 1000) for count in places.values()) < 150  # five standard deviations
