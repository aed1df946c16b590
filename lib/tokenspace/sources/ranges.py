"""Bytes of a file on a server: what was asked for and nothing else.

Ranges are fetched here and not by HfFileSystem or get_safetensors_metadata, which take any answer
for the bytes they asked for: a server may ignore Range and send the whole file, stop early, send
more, or send a login page with status 200. Each answer is checked before a byte of it is used.
"""

import time
from collections.abc import Callable

import httpx2
from huggingface_hub import constants
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status, http_stream_backoff

from tokenspace.errors import SourceError

STALLS = 4  # answers in a row that bring nothing before giving up
PAUSE = 1.0  # seconds, times the number of stalls so far


def fetch(
    url: str, where: str, start: int, end: int, commit: str, write: Callable[[bytes], object]
) -> None:
    """Pass bytes [start, end) of the file at `url` to `write` in order.

    The connection is huggingface_hub's own (its token, proxies and client factory); a redirect to
    another host loses the token. An answer that breaks off is resumed where it stopped.
    Raises SourceError for any answer that isn't exactly the bytes asked for, and the libraries'
    own errors for files that are refused, or a server that can't be reached or cuts off for good.
    """
    done, size, stalls, cause = start, 0, 0, ""
    while done < end:
        before = done
        headers = {"Range": f"bytes={done}-{end - 1}", "Accept-Encoding": "identity"}
        try:
            with http_stream_backoff(
                "GET",
                url,
                headers=build_hf_headers() | headers,
                timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT,
                max_retries=3,
                retry_on_exceptions=(),  # broken answers are resumed here, not begun again
            ) as response:
                said = _check(response, where, done, end, commit)
                if size not in (0, said):
                    raise SourceError(f"{where} had {size} bytes a moment ago, now {said}.")
                size = said
                for chunk in response.iter_raw():
                    if done + len(chunk) > end:
                        raise SourceError(f"{where}: the server sent more than it was asked for.")
                    write(chunk)
                    done += len(chunk)
        except httpx2.TransportError as error:
            if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout) and not size:
                raise
            cause = str(error) or type(error).__name__
        stalls = 0 if done > before else stalls + 1
        if stalls == STALLS:
            raise httpx2.ReadError(
                f"{where}: the server cut off after {done - start} of {end - start} bytes and "
                f"{STALLS} more tries brought nothing ({cause})"
            )
        time.sleep(PAUSE * stalls)


def _check(response: httpx2.Response, where: str, start: int, end: int, commit: str) -> int:
    """The file's size, after checking that this answer holds bytes [start, end) of it."""
    headers = response.headers
    said = headers.get("Content-Range", "none")
    length = headers.get("Content-Length", str(end - start))
    size = said.rpartition("/")[2]
    if response.status_code == 416 or (size.isdigit() and int(size) < end):
        raise SourceError(
            f"{where} is truncated on the server: bytes {start} to {end} were needed, it has "
            f"{size}. The upload is damaged; try another revision."
        )
    hf_raise_for_status(response)
    for answer in (*response.history, response):
        served = answer.headers.get(constants.HUGGINGFACE_HEADER_X_REPO_COMMIT, commit)
        if served != commit:
            raise SourceError(f"{where}: asked for commit {commit}, the server has {served}.")
    right = said.startswith(f"bytes {start}-{end - 1}/") and length == str(end - start)
    plain = headers.get("Content-Encoding", "identity") == "identity"
    if response.status_code != 206 or not right or not plain or not size.isdigit():
        raise SourceError(
            f"{where}: asked for bytes {start}-{end - 1}, the server answered "
            f"{response.status_code} with Content-Range {said}, {length} bytes of "
            f"{headers.get('Content-Type', 'unknown type')}, which weren't read. A mirror or proxy "
            "that doesn't do range requests can't be used: unset HF_ENDPOINT, or download the "
            "file and pass its path."
        )
    return int(size)
