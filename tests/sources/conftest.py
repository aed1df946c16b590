from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sources.hub_server import HubServer

from tokenspace.sources import ranges


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    """A well-behaved local Hub with an empty cache; tries again without waiting."""
    monkeypatch.setattr(ranges, "PAUSE", 0.0)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with HubServer() as server:
        server.use(monkeypatch, tmp_path / "cache")
        yield server
