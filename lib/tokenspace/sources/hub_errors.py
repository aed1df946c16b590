"""What went wrong between here and the Hub, in words that say what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
from huggingface_hub import constants
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from tokenspace.errors import SourceError
from tokenspace.sources.catalogue import offline_hint


@contextmanager
def explained(repo: str, revision: str, kind: str = "model") -> Iterator[None]:
    """Turn every error of a Hub call inside the block into a SourceError; a model or a dataset."""
    try:
        yield
    except HfHubHTTPError as error:
        raise SourceError(_refused(error, repo, revision, kind)) from error
    except (OfflineModeIsEnabled, LocalEntryNotFoundError, httpx2.TransportError) as error:
        raise SourceError(_unreachable(error, repo, revision, kind)) from error
    except httpx2.HTTPError as error:
        raise SourceError(f"{repo}: {type(error).__name__}: {error}") from error
    except HFValidationError as error:
        raise SourceError(f"{repo} can't be the id of a {kind} on the Hub: {error}") from error
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise SourceError(
            f"{repo}: {constants.ENDPOINT} didn't answer as the Hub does ({error}). If "
            "HF_ENDPOINT is set, check that it speaks the Hub's routes; a login page in between "
            "looks like this too."
        ) from error
    except OSError as error:
        raise SourceError(
            f"{repo}: the cache in {constants.HF_HUB_CACHE} can't be used "
            f"({error.strerror or error}). Free some space there, or set HF_HUB_CACHE to another "
            "folder."
        ) from error


def _refused(error: HfHubHTTPError, repo: str, revision: str, kind: str) -> str:
    site = f"{constants.ENDPOINT}/{'' if kind == 'model' else f'{kind}s/'}{repo}"
    status = error.response.status_code
    if isinstance(error, GatedRepoError):
        return f"{repo} is gated: accept its terms at {site}, then `hf auth login`."
    if isinstance(error, RevisionNotFoundError):
        return f"{repo} has no revision {revision}. Its branches and tags: {site}/tree/main."
    if isinstance(error, EntryNotFoundError):
        return f"{repo} lists a file that it doesn't serve: {error.server_message or status}."
    if isinstance(error, RepositoryNotFoundError) or status in (401, 403):
        return (
            f"{repo}: no such public {kind} at {constants.ENDPOINT} (HTTP {status}). Check the "
            "spelling; a private or gated one needs `hf auth login` with an account that may "
            "read it."
        )
    said = f": {error.server_message}" if error.server_message else ""
    return f"{repo}: {constants.ENDPOINT} answered HTTP {status}{said}. Try again later."


def _unreachable(error: Exception, repo: str, revision: str, kind: str) -> str:
    if isinstance(error, OfflineModeIsEnabled):
        reason = f"HF_HUB_OFFLINE is set and this {kind} isn't in the cache yet"
    else:
        cause = error.__cause__ if isinstance(error, LocalEntryNotFoundError) else error
        reason = f"{constants.ENDPOINT} can't be reached ({cause or error})"
    works = offline_hint() if kind == "model" else "'shakespeare' and files of text work offline."
    return f"{repo} at {revision}: {reason}. {works}"
