"""A server on this machine that speaks the Hub's routes, well or badly, and counts its bytes."""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Self
from urllib.parse import unquote, urlsplit

NAME = "(?P<repo>(?:datasets/)?[^/]+/[^/]+)"
API = re.compile(rf"/api/(?:models/)?{NAME}(?:/revision/(?P<revision>.+))?")
RESOLVE = re.compile(rf"/{NAME}/resolve/(?P<revision>[^/]+)/(?P<file>.+)")
PAGE = b"<!DOCTYPE html><html><body>Please log in</body></html>"


@dataclass
class Seen:
    """One request as it came, and how many bytes of body it was answered with."""

    method: str
    path: str
    headers: dict[str, str]
    sent: int = 0


@dataclass
class Repo:
    files: dict[str, bytes]
    commit: str
    revisions: dict[str, str]
    gated: bool = False


@dataclass
class HubServer:
    """Repositories by id; `misbehave` maps a file name to one of the kinds in `MISCHIEF`."""

    repos: dict[str, Repo] = field(default_factory=dict)
    misbehave: dict[str, str] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    elsewhere: str = ""  # where "redirect" sends people

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.hub = self  # type: ignore[attr-defined]
        self._server.daemon_threads = True
        Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def add(
        self, repo: str, files: dict[str, bytes], *, gated: bool = False, revision: str = "main"
    ) -> str:
        """Publish files as one commit of a repository; returns the commit.

        A dataset's repository is called "datasets/org/name".
        """
        content = b"".join(name.encode() + data for name, data in sorted(files.items()))
        commit = hashlib.sha1(repo.encode() + content).hexdigest()
        known = self.repos.get(repo)
        revisions = (known.revisions if known else {}) | {revision: commit}
        self.repos[repo] = Repo(files, commit, revisions, gated)
        self._commits[repo, commit] = files
        return commit

    def __post_init__(self) -> None:
        self._commits: dict[tuple[str, str], dict[str, bytes]] = {}

    def files(self, repo: str, revision: str) -> tuple[str, dict[str, bytes]] | None:
        commit = self.repos[repo].revisions.get(revision, revision)
        found = self._commits.get((repo, commit))
        return None if found is None else (commit, found)

    def environment(self, cache: Path) -> dict[str, str]:
        """What a subprocess needs in its environment to use this server."""
        return {"HF_ENDPOINT": self.url, "HF_HUB_CACHE": str(cache), "HF_HUB_OFFLINE": "0"}

    def use(self, monkeypatch: object, cache: Path) -> None:
        """Point huggingface_hub in this process at this server."""
        point_at(monkeypatch, self.url, cache)

    def sent(self) -> dict[str, int]:
        """Bytes of body sent so far, by file name."""
        total: dict[str, int] = defaultdict(int)
        for request in self.seen:
            match = RESOLVE.fullmatch(unquote(urlsplit(request.path).path))
            total[match["file"] if match else "api"] += request.sent
        return dict(total)


def point_at(monkeypatch: object, url: str, cache: Path) -> None:
    """Point huggingface_hub, which reads the environment once, at another endpoint."""
    from huggingface_hub import constants

    for name, value in (
        ("ENDPOINT", url),
        ("HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}"),
        ("HF_HUB_CACHE", str(cache)),
        ("HF_HUB_OFFLINE", False),
        ("HF_HUB_DOWNLOAD_TIMEOUT", 5),
    ):
        monkeypatch.setattr(constants, name, value)  # type: ignore[attr-defined]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def hub(self) -> HubServer:
        return self.server.hub  # type: ignore[attr-defined,no-any-return]

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        seen = Seen(self.command, self.path, {k.lower(): v for k, v in self.headers.items()})
        self.hub.seen.append(seen)
        self.request_seen = seen
        path = unquote(urlsplit(self.path).path)
        if match := API.fullmatch(path):
            self._api(match["repo"], match["revision"] or "main")
        elif match := RESOLVE.fullmatch(path):
            self._resolve(match["repo"], match["revision"], match["file"])
        else:
            self._refuse(404, "EntryNotFound", "no such route")

    do_HEAD = do_GET  # noqa: N815

    def _api(self, repo: str, revision: str) -> None:
        if "api" in self.hub.misbehave:
            return self._answer(200, PAGE, {"Content-Type": "text/html"})
        if repo not in self.hub.repos:
            return self._refuse(401, "RepoNotFound", "Invalid username or password.")
        found = self.hub.files(repo, revision)
        if found is None:
            return self._refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        siblings = [{"rfilename": name} for name in found[1]]
        body = {"id": repo.removeprefix("datasets/"), "sha": found[0], "siblings": siblings}
        return self._answer(200, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def _resolve(self, repo: str, revision: str, file: str) -> None:
        if repo not in self.hub.repos:
            return self._refuse(401, "RepoNotFound", "Invalid username or password.")
        if self.hub.repos[repo].gated:
            return self._refuse(401, "GatedRepo", f"Access to model {repo} is restricted.")
        found = self.hub.files(repo, revision)
        if found is None or file not in found[1]:
            return self._refuse(404, "EntryNotFound", "Entry not found")
        data = found[1][file]
        headers = {
            "X-Repo-Commit": found[0],
            "ETag": f'"{hashlib.sha1(data).hexdigest()}"',
            "Accept-Ranges": "bytes",
            "Content-Type": "application/octet-stream",
        }
        mischief = MISCHIEF.get(self.hub.misbehave.get(file, ""))
        if mischief:
            return mischief(self, data, headers)
        return self.serve(data, headers)

    def serve(self, data: bytes, headers: dict[str, str]) -> None:
        """The whole file, or the range that was asked for."""
        span = self.span(data)
        if span is None:
            return self._answer(200, data, headers)
        start, end = span
        if start >= len(data):
            return self._answer(416, b"", headers | {"Content-Range": f"bytes */{len(data)}"})
        says = {"Content-Range": f"bytes {start}-{end - 1}/{len(data)}"}
        return self._answer(206, data[start:end], headers | says)

    def span(self, data: bytes) -> tuple[int, int] | None:
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        return (int(match[1]), min(int(match[2]) + 1, len(data))) if match else None

    def _refuse(self, status: int, code: str, message: str) -> None:
        self._answer(status, b"", {"X-Error-Code": code, "X-Error-Message": message})

    def _answer(
        self, status: int, body: bytes, headers: dict[str, str], cut: int | None = None
    ) -> None:
        """One answer; with `cut` the connection breaks after so many bytes of the body."""
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        body = body if cut is None else body[:cut]
        try:
            for at in range(0, len(body), 65536):
                self.request_seen.sent += len(body[at : at + 65536])  # before a reader sees them
                self.wfile.write(body[at : at + 65536])
        except OSError:  # the client hung up, as it should on an answer it didn't ask for
            self.close_connection = True
        if cut is not None:
            self.close_connection = True


def _ranged(handler: _Handler, data: bytes, headers: dict[str, str]) -> tuple[bytes, dict]:
    start, end = handler.span(data) or (0, len(data))
    says = {"Content-Range": f"bytes {start}-{end - 1}/{len(data)}"}
    return data[start:end], headers | says


def _truncate(handler: _Handler, data: bytes, headers: dict[str, str]) -> None:
    handler.serve(data[: len(data) // 2], headers)


def _cut(handler: _Handler, data: bytes, headers: dict[str, str]) -> None:
    """Break off halfway through what is asked for; what is left gets shorter each time."""
    body, headers = _ranged(handler, data, headers)
    handler._answer(206, body, headers, cut=-(-len(body) // 2))


def _silent(handler: _Handler, data: bytes, headers: dict[str, str]) -> None:
    """Serve small ranges and break off larger ones before the first byte."""
    body, headers = _ranged(handler, data, headers)
    handler._answer(206, body, headers, cut=None if len(body) < 1000 else 0)


def _redirect(handler: _Handler, data: bytes, headers: dict[str, str]) -> None:
    says = {"Location": handler.hub.elsewhere + handler.path, "X-Repo-Commit": ""}
    handler._answer(302, b"", headers | says | {"X-Repo-Commit": headers["X-Repo-Commit"]})


def _wrong_range(handler: _Handler, data: bytes, headers: dict[str, str]) -> None:
    """Serve the right number of bytes from the beginning of the file, and admit it."""
    body, headers = _ranged(handler, data, headers)
    says = {"Content-Range": f"bytes 0-{len(body) - 1}/{len(data)}"}
    handler._answer(206, data[: len(body)], headers | says)


def _whole_as_part(handler: _Handler, data: bytes, headers: dict[str, str]) -> None:
    """Send the whole file while claiming the range."""
    _, headers = _ranged(handler, data, headers)
    handler._answer(206, data, headers)


def _long(handler: _Handler, data: bytes, headers: dict[str, str]) -> None:
    """Chunks that go on beyond the range, with no length given."""
    body, headers = _ranged(handler, data, headers)
    body += b"more than was asked for"
    chunks = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
    handler.send_response(206)
    for name, value in (headers | {"Transfer-Encoding": "chunked"}).items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(chunks)


def _other_commit(handler: _Handler, data: bytes, headers: dict[str, str]) -> None:
    handler.serve(data, headers | {"X-Repo-Commit": "0" * 40})


MISCHIEF: dict[str, Callable[[_Handler, bytes, dict[str, str]], None]] = {
    "ignore-range": lambda h, data, headers: h._answer(200, data, headers),
    "html": lambda h, data, headers: h._answer(200, PAGE, headers | {"Content-Type": "text/html"}),
    "truncate": _truncate,
    "cut": _cut,
    "silent": _silent,
    "redirect": _redirect,
    "wrong-range": _wrong_range,
    "whole-as-part": _whole_as_part,
    "long": _long,
    "other-commit": _other_commit,
    "missing": lambda h, data, headers: h._refuse(404, "EntryNotFound", "Entry not found"),
    "busy": lambda h, data, headers: h._answer(500, b"", {}),
}
