"""Any public model or dataset of Hugging Face, reading only the bytes of one tensor.

Everything is pinned to the commit that the revision names at that moment. Small files go through
huggingface_hub's cache as usual; the bytes of headers and of the tensor are kept in the same
folder, below `tables/<commit>`, so that `hf cache` commands see and remove them with the model.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

import httpx2
from huggingface_hub import HfApi, constants, errors, hf_hub_download, hf_hub_url
from huggingface_hub import try_to_load_from_cache as cached
from huggingface_hub.file_download import repo_folder_name
from tqdm import tqdm

from tokenspace.errors import SourceError, UnreachableError
from tokenspace.files import placing
from tokenspace.sources.files import Entry
from tokenspace.sources.packaged import offline_hint
from tokenspace.sources.ranges import fetch
from tokenspace.sources.weights import Store

LONG = 2**20  # bytes: what is worth a progress bar


class HfRepo(Store):
    """A model's or dataset's files at one commit; a model's weights are never fetched whole.

    Raises SourceError for a repository or revision that can't be read, UnreachableError where it
    may be another time. Without a network it works from what was fetched before.
    """

    local = False

    def __init__(self, repo: str, revision: str | None = None, kind: str = "model") -> None:
        self.repo, self.revision, self.kind = repo, revision or constants.DEFAULT_REVISION, kind
        with self._explained():
            folder = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repo, repo_type=kind)
            self._kept = folder / "tables"
            self.commit, self.files = self._listing()
        self.where = f"{repo}@{self.commit[:12]}"

    def _listing(self) -> tuple[str, list[str]]:
        """The commit and its files; from disk for a known commit or without a network."""
        memo = self._memo(self.revision)
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
        for at in {memo, self._memo(info.sha)}:
            with suppress(OSError), keeping(at) as file:  # it may be read-only and hold the table
                file.write(json.dumps([info.sha, names]).encode())
        return info.sha, names

    def _memo(self, revision: str) -> Path:
        return self._kept / f"{quote(revision, safe='')}.json"

    def small(self, name: str) -> Path:
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
        try:
            return super().header(name)
        except SourceError:  # what isn't a header isn't kept
            shutil.rmtree(self._kept / self.commit / quote(name, safe=""), ignore_errors=True)
            raise

    def at(self, name: str, start: int, end: int) -> tuple[Path, int]:
        """Bytes of a file that another tool downloaded, or of a range that was fetched and kept."""
        whole = cached(self.repo, name, constants.HF_HUB_CACHE, self.commit)
        if isinstance(whole, str):
            return Path(whole), start
        kept = self._kept / self.commit / quote(name, safe="") / f"{start}-{end}"
        url = hf_hub_url(self.repo, name, revision=self.commit, endpoint=constants.ENDPOINT)
        where, size = f"{self.where}/{name}", end - start
        if not kept.exists():
            quiet = size < LONG or None  # None: shown on a terminal
            with (
                self._explained(),
                keeping(kept) as file,
                tqdm(total=size, desc=name, unit="B", unit_scale=True, disable=quiet) as bar,
            ):
                fetch(url, where, start, end, self.commit, lambda c: bar.update(file.write(c)))
        return kept, 0

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn every error of a call inside the block into a SourceError that says what to do."""
        place = constants.ENDPOINT
        try:
            yield
        except errors.HfHubHTTPError as error:
            status = error.response.status_code
            if status == 429 or status >= 500:
                reason = f"{place} answered HTTP {status}; try again later"
                raise self._unreachable(reason) from error
            raise SourceError(self._refused(error)) from error
        except errors.OfflineModeIsEnabled as error:
            reason = f"HF_HUB_OFFLINE is set and this {self.kind} isn't in the cache yet"
            raise self._unreachable(reason) from error
        except (errors.LocalEntryNotFoundError, httpx2.TransportError) as error:
            reason = f"{place} can't be reached ({error.__cause__ or error})"
            raise self._unreachable(reason) from error
        except httpx2.HTTPError as error:
            raise SourceError(f"{self.repo}: {type(error).__name__}: {error}") from error
        except errors.HFValidationError as error:
            raise SourceError(
                f"{self.repo} can't be the id of a {self.kind} of Hugging Face: {error}"
            ) from error
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise SourceError(
                f"{self.repo}: {place} didn't answer as Hugging Face does ({error}). "
                "If HF_ENDPOINT is set, check that it speaks the same routes; a login page in "
                "between looks like this too."
            ) from error
        except OSError as error:
            raise SourceError(
                f"{self.repo}: the cache in {constants.HF_HUB_CACHE} can't be used "
                f"({error.strerror or error}). Free some space there, or set HF_HUB_CACHE to "
                "another folder."
            ) from error

    def _refused(self, error: errors.HfHubHTTPError) -> str:
        repo, status = self.repo, error.response.status_code
        site = f"{constants.ENDPOINT}/{'' if self.kind == 'model' else f'{self.kind}s/'}{repo}"
        if isinstance(error, errors.GatedRepoError):
            return f"{repo} is gated: accept its terms at {site}, then `hf auth login`."
        if isinstance(error, errors.RevisionNotFoundError):
            return (
                f"{repo} has no revision {self.revision}. Its branches and tags: {site}/tree/main."
            )
        if isinstance(error, errors.EntryNotFoundError):
            return f"{repo} lists a file that it doesn't serve: {error.server_message or status}."
        said = f": {error.server_message}" if error.server_message else ""
        return (
            f"{repo}: no such public {self.kind} at {constants.ENDPOINT} "
            f"(HTTP {status}{said}), and no such file or folder here. Check the spelling; a "
            "private or gated one needs `hf auth login` with an account that may read it."
        )

    def _unreachable(self, reason: str) -> UnreachableError:
        """The error, said in the run's folder too: a page that goes on without isn't current.

        The folder is in TOKENSPACE_RUN; a file `unreached.txt` there has the run made again.
        """
        if run := os.environ.get("TOKENSPACE_RUN"):
            with suppress(OSError), Path(run, "unreached.txt").open("a", encoding="utf-8") as file:
                file.write(f"{self.repo}: {reason}\n")
        works = "'shakespeare' and files of text work offline."
        works = offline_hint() if self.kind == "model" else works
        return UnreachableError(
            f"{self.repo} at {self.revision}: no such file or folder here, and {reason}. {works}"
        )


def _read_listing(path: Path) -> tuple[str, list[str]]:
    commit, names = json.loads(path.read_text("utf-8"))
    return str(commit), [str(name) for name in names]


@contextmanager
def keeping(path: Path) -> Iterator[BinaryIO]:
    """A file of the cache to write into, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with placing(path) as part, part.open("wb") as file:
        yield file
