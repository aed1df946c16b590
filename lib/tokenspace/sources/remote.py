"""Any public model on the Hugging Face Hub, reading only the bytes of one tensor.

Everything is pinned to the commit that the revision names at that moment. Small files go through
huggingface_hub's cache as usual; headers and the tensor are kept in the same folder, below
`tables/<commit>`, so that `hf cache` commands see and remove them with the model.
"""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

import httpx2
from huggingface_hub import HfApi, constants, hf_hub_download, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import OfflineModeIsEnabled
from huggingface_hub.file_download import repo_folder_name
from torch import Tensor
from tqdm import tqdm

from tokenspace.placing import placing
from tokenspace.sources.hub_errors import explained
from tokenspace.sources.ranges import fetch
from tokenspace.sources.safetensors_file import (
    Entry,
    header_length,
    parse_header,
    read_header,
    read_tensor,
)


class HubRepo:
    """A model's or dataset's files on the Hub at one commit; a model's are never fetched whole.

    Raises SourceError for a repository, revision or server that can't be read. Without a network
    (or with HF_HUB_OFFLINE) it works from what was fetched before.
    """

    def __init__(self, repo: str, revision: str | None = None, kind: str = "model") -> None:
        self.repo, self.revision, self.kind = repo, revision or constants.DEFAULT_REVISION, kind
        with self._explained():
            folder = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repo, repo_type=kind)
            self._kept = folder / "tables"
            self.commit, self.files = self._listing()
        self.where = f"{repo}@{self.commit[:12]}"

    def _explained(self) -> AbstractContextManager[None]:
        return explained(self.repo, self.revision, self.kind)

    def _listing(self) -> tuple[str, list[str]]:
        """The commit and its files; from disk for a known commit or without a network."""
        memo = self._kept / f"{quote(self.revision, safe='')}.json"
        if constants.REGEX_COMMIT_OID.fullmatch(self.revision) and memo.exists():
            return _read_listing(memo)
        try:
            api = HfApi(endpoint=constants.ENDPOINT)
            ask = api.model_info if self.kind == "model" else api.dataset_info
            info = ask(self.repo, revision=self.revision, timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT)
        except (OfflineModeIsEnabled, httpx2.TransportError):
            if memo.exists():
                return _read_listing(memo)
            whole = try_to_load_from_cache(
                self.repo, "config.json", constants.HF_HUB_CACHE, self.revision
            )
            if isinstance(whole, str):  # a snapshot that another tool downloaded
                snapshot = Path(whole).parent
                return snapshot.name, sorted(p.name for p in snapshot.iterdir())
            raise
        if info.sha is None:
            raise ValueError("no commit for this revision")
        files = [f.rfilename for f in info.siblings or []]
        listing = json.dumps([info.sha, files]).encode()
        with suppress(OSError):  # a shared cache may be read-only and still hold the table
            _keep(memo, lambda file: file.write(listing))
        return info.sha, files

    def small(self, name: str) -> Path:
        with self._explained():
            return Path(
                hf_hub_download(
                    self.repo,
                    name,
                    repo_type=self.kind,
                    revision=self.commit,
                    cache_dir=constants.HF_HUB_CACHE,
                    endpoint=constants.ENDPOINT,
                )
            )

    def header(self, name: str) -> dict[str, Entry]:
        """The header of a safetensors file: two range requests, kept for the next time."""
        whole = self._downloaded(name)
        if whole:
            return read_header(whole)
        where, kept = f"{self.where}/{name}", self._path(name, "header")
        if kept.exists():
            content = kept.read_bytes()
            return parse_header(content[8:], int.from_bytes(content[:8], "little"), where)
        first, raw = bytearray(), bytearray()
        size = self._fetch(name, 0, 8, first.extend)
        length = header_length(bytes(first), size, where)
        self._fetch(name, 8, 8 + length, raw.extend)
        entries = parse_header(bytes(raw), size, where)
        with suppress(OSError):
            _keep(kept, lambda file: file.write(size.to_bytes(8, "little") + raw))
        return entries

    def tensor(self, name: str, entry: Entry) -> Tensor:
        """One tensor by range requests, written to disk as it comes and mapped from there."""
        whole = self._downloaded(name)
        if whole:
            return read_tensor(whole, entry)
        kept = self._path(name, quote(entry.name, safe="") + ".safetensors")
        if not kept.exists():

            def fill(file: BinaryIO) -> None:
                file.write(_lone_header(entry))
                with tqdm(
                    total=entry.nbytes, desc=entry.name, unit="B", unit_scale=True, disable=None
                ) as bar:

                    def write(chunk: bytes) -> None:
                        file.write(chunk)
                        bar.update(len(chunk))

                    self._fetch(name, entry.start, entry.end, write)

            with self._explained():
                _keep(kept, fill)
        return read_tensor(kept, read_header(kept)[entry.name])

    def _downloaded(self, name: str) -> Path | None:
        path = try_to_load_from_cache(self.repo, name, constants.HF_HUB_CACHE, self.commit)
        return Path(path) if isinstance(path, str) else None

    def _path(self, name: str, last: str) -> Path:
        return self._kept / self.commit / quote(name, safe="") / last

    def _fetch(self, name: str, start: int, end: int, write: Callable[[bytes], object]) -> int:
        url = hf_hub_url(self.repo, name, revision=self.commit, endpoint=constants.ENDPOINT)
        with self._explained():
            return fetch(url, f"{self.where}/{name}", start, end, self.commit, write)


def _read_listing(path: Path) -> tuple[str, list[str]]:
    commit, files = json.loads(path.read_text("utf-8"))
    return str(commit), [str(name) for name in files]


def _lone_header(entry: Entry) -> bytes:
    """The beginning of a safetensors file that holds this tensor alone."""
    fields = {"dtype": entry.dtype, "shape": entry.shape, "data_offsets": [0, entry.nbytes]}
    raw = json.dumps({entry.name: fields}).encode()
    raw += b" " * (-len(raw) % 8)
    return len(raw).to_bytes(8, "little") + raw


def _keep(path: Path, fill: Callable[[BinaryIO], object]) -> None:
    """Write a file under another name, then rename it: it exists whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with placing(path) as part, part.open("wb") as file:
        fill(file)
