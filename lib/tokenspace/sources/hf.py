"""Any public model or dataset of Hugging Face, reading only the bytes of one tensor.

Everything is pinned to the commit that the revision names at that moment. Small files go through
huggingface_hub's cache as usual; headers and the tensor are kept in the same folder, below
`tables/<commit>`, so that `hf cache` commands see and remove them with the model.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

import httpx2
from huggingface_hub import HfApi, constants, errors, hf_hub_download, hf_hub_url
from huggingface_hub import try_to_load_from_cache as cached
from huggingface_hub.file_download import repo_folder_name
from torch import Tensor
from tqdm import tqdm

from tokenspace.errors import SourceError
from tokenspace.files import placing
from tokenspace.sources.files import Entry, header_length, parse_header, read_header, read_tensor
from tokenspace.sources.packaged import offline_hint
from tokenspace.sources.ranges import fetch


class HfRepo:
    """A model's or dataset's files at one commit; a model's weights are never fetched whole.

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

    def _listing(self) -> tuple[str, list[str]]:
        """The commit and its files; from disk for a known commit or without a network."""
        memo = self._kept / f"{quote(self.revision, safe='')}.json"
        if constants.REGEX_COMMIT_OID.fullmatch(self.revision) and memo.exists():
            return _read_listing(memo)
        try:
            info = HfApi(endpoint=constants.ENDPOINT).repo_info(
                self.repo,
                repo_type=self.kind,
                revision=self.revision,
                timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT,
            )
        except (errors.OfflineModeIsEnabled, httpx2.TransportError):
            if memo.exists():
                return _read_listing(memo)
            whole = cached(self.repo, "config.json", constants.HF_HUB_CACHE, self.revision)
            if isinstance(whole, str):  # a snapshot that another tool downloaded
                snapshot = Path(whole).parent
                return snapshot.name, sorted(p.name for p in snapshot.iterdir())
            raise
        if info.sha is None:
            raise ValueError("no commit for this revision")
        names = [f.rfilename for f in getattr(info, "siblings", None) or []]
        listing = json.dumps([info.sha, names]).encode()
        with suppress(OSError):  # a shared cache may be read-only and still hold the table
            keep(memo, lambda file: file.write(listing))
        return info.sha, names

    def small(self, name: str) -> Path:
        """A whole small file (configuration, index, tokenizer, text), through the usual cache."""
        with self._explained():
            path = hf_hub_download(
                self.repo,
                name,
                repo_type=self.kind,
                revision=self.commit,
                cache_dir=constants.HF_HUB_CACHE,
                endpoint=constants.ENDPOINT,
            )
        return Path(path)

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
            keep(kept, lambda file: file.write(size.to_bytes(8, "little") + raw))
        return entries

    def tensor(self, name: str, entry: Entry) -> Tensor:
        """One tensor by range requests, written to disk as it comes and mapped from there."""
        whole = self._downloaded(name)
        if whole:
            return read_tensor(whole, entry)
        kept = self._path(name, quote(entry.name, safe="") + ".safetensors")
        if not kept.exists():
            with self._explained():
                keep(kept, lambda file: self._fill(file, name, entry))
        return read_tensor(kept, read_header(kept)[entry.name])

    def _fill(self, file: BinaryIO, name: str, entry: Entry) -> None:
        """Write a safetensors file that holds this tensor alone."""
        about = {"dtype": entry.dtype, "shape": entry.shape, "data_offsets": [0, entry.nbytes]}
        raw = json.dumps({entry.name: about}).encode()
        raw += b" " * (-len(raw) % 8)  # the data begins at a multiple of 8 bytes
        file.write(len(raw).to_bytes(8, "little") + raw)
        progress = tqdm(
            total=entry.nbytes, desc=entry.name, unit="B", unit_scale=True, disable=None
        )
        with progress as bar:
            self._fetch(name, entry.start, entry.end, lambda c: bar.update(file.write(c)))

    def _downloaded(self, name: str) -> Path | None:
        path = cached(self.repo, name, constants.HF_HUB_CACHE, self.commit)
        return Path(path) if isinstance(path, str) else None

    def _path(self, name: str, last: str) -> Path:
        return self._kept / self.commit / quote(name, safe="") / last

    def _fetch(self, name: str, start: int, end: int, write: Callable[[bytes], object]) -> int:
        url = hf_hub_url(self.repo, name, revision=self.commit, endpoint=constants.ENDPOINT)
        with self._explained():
            return fetch(url, f"{self.where}/{name}", start, end, self.commit, write)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn every error of a call inside the block into a SourceError that says what to do."""
        try:
            yield
        except errors.HfHubHTTPError as error:
            raise SourceError(_refused(error, self)) from error
        except errors.OfflineModeIsEnabled as error:
            reason = f"HF_HUB_OFFLINE is set and this {self.kind} isn't in the cache yet"
            raise SourceError(_unreachable(reason, self)) from error
        except (errors.LocalEntryNotFoundError, httpx2.TransportError) as error:
            cause = error.__cause__ if isinstance(error, errors.LocalEntryNotFoundError) else error
            reason = f"{constants.ENDPOINT} can't be reached ({cause or error})"
            raise SourceError(_unreachable(reason, self)) from error
        except httpx2.HTTPError as error:
            raise SourceError(f"{self.repo}: {type(error).__name__}: {error}") from error
        except errors.HFValidationError as error:
            raise SourceError(
                f"{self.repo} can't be the id of a {self.kind} of Hugging Face: {error}"
            ) from error
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise SourceError(
                f"{self.repo}: {constants.ENDPOINT} didn't answer as Hugging Face does ({error}). "
                "If HF_ENDPOINT is set, check that it speaks the same routes; a login page in "
                "between looks like this too."
            ) from error
        except OSError as error:
            raise SourceError(
                f"{self.repo}: the cache in {constants.HF_HUB_CACHE} can't be used "
                f"({error.strerror or error}). Free some space there, or set HF_HUB_CACHE to "
                "another folder."
            ) from error


def _refused(error: errors.HfHubHTTPError, of: HfRepo) -> str:
    site = f"{constants.ENDPOINT}/{'' if of.kind == 'model' else f'{of.kind}s/'}{of.repo}"
    status = error.response.status_code
    if isinstance(error, errors.GatedRepoError):
        return f"{of.repo} is gated: accept its terms at {site}, then `hf auth login`."
    if isinstance(error, errors.RevisionNotFoundError):
        return f"{of.repo} has no revision {of.revision}. Its branches and tags: {site}/tree/main."
    if isinstance(error, errors.EntryNotFoundError):
        return f"{of.repo} lists a file that it doesn't serve: {error.server_message or status}."
    if isinstance(error, errors.RepositoryNotFoundError) or status in (401, 403):
        return (
            f"{of.repo}: no such public {of.kind} at {constants.ENDPOINT} (HTTP {status}), and no "
            "such file or folder here. Check the spelling; a private or gated one needs "
            "`hf auth login` with an account that may read it."
        )
    said = f": {error.server_message}" if error.server_message else ""
    return f"{of.repo}: {constants.ENDPOINT} answered HTTP {status}{said}. Try again later."


def _unreachable(reason: str, of: HfRepo) -> str:
    """Say that a repository is out of reach; a page that goes on without it isn't kept as current.

    A run's folder is in TOKENSPACE_RUN; a file `unreached.txt` there has the run made again.
    """
    if run := os.environ.get("TOKENSPACE_RUN"):
        with suppress(OSError), Path(run, "unreached.txt").open("a", encoding="utf-8") as file:
            file.write(f"{of.repo}: {reason}\n")
    works = "'shakespeare' and files of text work offline."
    works = offline_hint() if of.kind == "model" else works
    return f"{of.repo} at {of.revision}: no such file or folder here, and {reason}. {works}"


def _read_listing(path: Path) -> tuple[str, list[str]]:
    commit, names = json.loads(path.read_text("utf-8"))
    return str(commit), [str(name) for name in names]


def keep(path: Path, fill: Callable[[BinaryIO], object]) -> None:
    """Write a file of the cache whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with placing(path) as part, part.open("wb") as file:
        fill(file)
