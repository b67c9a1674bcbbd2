"""Enqueue, look up and retry jobs of Redrive from Python, over its HTTP API.

One file without dependencies, for Python 3.10 or newer: copy it into your project.

    client = Client("http://127.0.0.1:4180", token=os.environ["REDRIVE_TOKEN"])
    job = client.enqueue("thumbnail", {"file": "a.mp4"}, key="a.mp4")
    done = client.wait(job["id"], timeout=60)

A call that changes nothing twice is tried again by itself after a network error and after the answers 429, 502, 503 and
504, with a wait that grows and varies, and not before the server allows it (Retry-After). Every enqueue is such a call,
because the client makes the id of the job. A `Client` may be used by several threads.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import ssl
import time
import urllib.parse
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, cast

__all__ = [
    "Client",
    "Enqueued",
    "EnqueueOptions",
    "Job",
    "JobDead",
    "LineAnswer",
    "LineError",
    "NewJob",
    "RedriveError",
    "Retries",
    "Unreachable",
    "WaitTimeout",
    "raw_json",
]

Unique = Literal["key", "queued", "active", "replace", "debounce"]
Duration = str | int
"""`"90s"`, `"1h30m"`, or whole milliseconds."""


class EnqueueOptions(TypedDict, total=False):
    """Options of a job; each is left out for its default."""

    id: str
    key: str
    unique: Unique
    priority: int
    delay: Duration
    runAt: str | int
    tenant: str
    group: str
    queue: str
    service: str
    deadline: Duration | None
    maxAttempts: int
    maxRetries: int


class NewJob(EnqueueOptions, total=False):
    """One of many jobs to enqueue: `type` and `payload`, and any options."""

    type: str
    payload: Any


class Enqueued(TypedDict):
    """What became of an enqueue; `id` is that of the job that holds the key, where there was one."""

    id: str
    type: str
    duplicate: bool
    replaced: bool
    state: str | None


class LineError(TypedDict, total=False):
    """Why one of many jobs was refused."""

    code: str
    message: str
    hint: str
    details: dict[str, Any]
    requestId: str


class LineAnswer(TypedDict, total=False):
    """What became of one of many jobs: the fields of `Enqueued`, or `error`. `line` counts from 1."""

    line: int
    id: str
    type: str
    duplicate: bool
    replaced: bool
    state: str | None
    error: LineError


Job = dict[str, Any]
"""A job as `redrive jobs show --json` prints it, with its failed runs as `history`."""


class RedriveError(Exception):
    """What the server refused: `code` is for programs, the message says what to do."""

    def __init__(self, status: int, error: Mapping[str, Any], retry_after: float | None = None) -> None:
        super().__init__(str(error.get("message") or f"The server answered {status}."))
        self.status = status
        self.code: str = str(error.get("code") or "internal")
        self.hint: str | None = error.get("hint")
        self.details: dict[str, Any] = dict(error.get("details") or {})
        self.request_id: str | None = error.get("requestId")
        self.retry_after = retry_after
        """Seconds after which the server takes the call again; None where it does not say."""


class Unreachable(Exception):
    """No answer came: the server is away, or took longer than `timeout`. An enqueue may have been written or not."""


class WaitTimeout(Exception):
    """The job has not ended in time; it goes on. `job` is its last state."""

    def __init__(self, job: Job) -> None:
        super().__init__(f"Job {job.get('id')} has not ended in time; it is {job.get('shown')}.")
        self.job = job


class JobDead(Exception):
    """The job ended as dead or cancelled; `job` has its failure."""

    def __init__(self, job: Job) -> None:
        failure = job.get("failure") or {}
        super().__init__(f"Job {job.get('id')} is {job.get('state')}: {failure.get('message') or 'no failure'}")
        self.job = job


@dataclass(frozen=True)
class Retries:
    """How calls are tried again: at most `attempts` in all, within `seconds`, after waits from `first` up to `longest`."""

    attempts: int = 6
    seconds: float = 30.0
    first: float = 0.2
    longest: float = 5.0


@dataclass(frozen=True)
class _Raw:
    text: str


def raw_json(text: str) -> Any:
    """A payload that is JSON already; the server keeps it byte for byte."""
    json.loads(text)
    return _Raw(text)


_AGAIN = frozenset({429, 502, 503, 504})
_PREFIX = "/api/v1"
_LINES = 1_000


@dataclass
class Client:
    """A client of one server. `timeout` is how many seconds the server may be silent."""

    url: str
    token: str | None = field(default=None, repr=False)
    timeout: float = 30.0
    retries: Retries = field(default_factory=Retries)
    context: ssl.SSLContext | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        parts = urllib.parse.urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f'url: expected an address such as "http://127.0.0.1:4180"; got {self.url!r}; correct it')
        if self.timeout <= 0:
            raise ValueError(f"timeout: expected seconds above 0; got {self.timeout!r}; raise it")
        self._host = parts.hostname
        self._port = parts.port
        self._is_tls = parts.scheme == "https"
        self._path = parts.path.rstrip("/") + _PREFIX

    def enqueue(self, type: str, payload: Any, **options: Any) -> Enqueued:
        """Enqueues a job; the options are those of `EnqueueOptions`."""
        body = _job({**options, "type": type, "payload": payload})
        return cast(Enqueued, self._json("POST", "/jobs", body, is_again=True))

    def enqueue_many(self, jobs: Iterable[NewJob]) -> Iterator[LineAnswer]:
        """Enqueues any number of jobs; yields an answer for each, in their order.

        Reads and sends 1,000 at a time, so that neither side holds all of them. A bad job is answered with `error` and
        stops no other. A part that is lost on the way is sent again; those that were written are then duplicates.
        """
        before = 0
        part: list[str] = []
        for job in jobs:
            part.append(_job(job))
            if len(part) == _LINES:
                yield from self._lines(part, before)
                before += len(part)
                part = []
        if part:
            yield from self._lines(part, before)

    def get(self, id: str, *, payloads: bool | None = None) -> Job:
        """Reads a job with its failed runs; with `payloads=False` without payload, progress and result."""
        query = "" if payloads is None else f"?payloads={'true' if payloads else 'false'}"
        return cast(Job, self._json("GET", f"/jobs/{_quoted(id)}{query}", is_again=True))

    def wait(self, id: str, timeout: float = 300.0, *, poll: float = 0.5) -> Job:
        """Waits until the job has completed and returns it; raises `JobDead` or `WaitTimeout`."""
        end = time.monotonic() + timeout
        pause = min(poll, 0.05)
        while True:
            job = self.get(id)
            if job["state"] == "completed":
                return job
            if job["state"] in ("dead", "cancelled"):
                raise JobDead(job)
            left = end - time.monotonic()
            if left <= 0:
                raise WaitTimeout(job)
            time.sleep(min(left, pause * random.uniform(0.8, 1.2)))
            pause = min(poll, pause * 2)

    def dead_letters(self, **filters: Any) -> Iterator[Job]:
        """Yields dead letters, newest first; narrowed by type, key, tenant, service, class, fingerprint, reason, text …"""
        if "class_" in filters:
            filters["class"] = filters.pop("class_")
        cursor: str | None = None
        while True:
            page = self._json("GET", f"/dead-letters?{_query({**filters, 'limit': 200, 'cursor': cursor})}", is_again=True)
            yield from page["items"]
            cursor = page["next"]
            if cursor is None:
                return

    def retry(self, id: str, *, why: str | None = None) -> dict[str, Any]:
        """Runs a job now: sends a dead one back to work, and makes a waiting one due."""
        return cast("dict[str, Any]", self._json("POST", f"/jobs/{_quoted(id)}/retry", _text({"why": why})))

    def retry_cause(self, fingerprint: str, *, why: str | None = None, **filters: Any) -> int:
        """Sends the dead letters of one cause back to work, and no other; returns how many.

        They are sent by their ids, so that letters which die of it meanwhile stay where they are. For many letters plan a
        redrive run instead (`redrive start`): it goes by steps and stops itself while the cause is still there.
        """
        found = self.dead_letters(**{**filters, "fingerprint": fingerprint, "redriven": False, "payloads": False})
        ids = list(dict.fromkeys(letter["id"] for letter in found))
        changed = 0
        for at in range(0, len(ids), _LINES):
            body = _text({"action": "retry", "target": {"ids": ids[at : at + _LINES]}, "why": why})
            answer = self._json("POST", "/bulk", body)
            changed += int(answer["redriven"])
        return changed

    def _json(self, method: str, path: str, body: str | None = None, *, is_again: bool = False) -> Any:
        def call() -> Any:
            status, text, retry_after = self._send(method, path, body, "application/json")
            if status >= 400:
                raise _error(status, text, retry_after)
            return json.loads(text)

        return self._trying(call) if is_again else call()

    def _lines(self, part: list[str], before: int) -> list[LineAnswer]:
        def call() -> list[LineAnswer]:
            status, text, retry_after = self._send("POST", "/jobs", "\n".join(part) + "\n", "application/x-ndjson")
            if status >= 400:
                raise _error(status, text, retry_after)
            answers = [cast(LineAnswer, json.loads(line)) for line in text.splitlines() if line.strip()]
            broken = [answer for answer in answers if answer.get("line") is None]
            if broken or len(answers) != len(part):
                raise Unreachable(f"{len(answers) - len(broken)} of {len(part)} lines were answered")
            away = next((a["error"] for a in answers if a.get("error", {}).get("code") == "store_unavailable"), None)
            if away is not None:
                raise RedriveError(503, away)
            return answers

        answers: list[LineAnswer] = self._trying(call)
        for answer in answers:
            answer["line"] += before
        return answers

    def _trying(self, call: Callable[[], Any]) -> Any:
        end = time.monotonic() + self.retries.seconds
        wait = self.retries.first
        for attempt in range(1, self.retries.attempts + 1):
            try:
                return call()
            except (RedriveError, Unreachable) as error:
                is_last = attempt == self.retries.attempts
                if is_last or (isinstance(error, RedriveError) and error.status not in _AGAIN):
                    raise
                asked = getattr(error, "retry_after", None) or 0.0
                pause = max(asked, 0.0) + random.uniform(wait / 2, wait)
                if time.monotonic() + pause > end:
                    raise
                time.sleep(pause)
                wait = min(wait * 2, self.retries.longest)
        raise ValueError("retries.attempts: expected 1 or more; got less; raise it")

    def _send(self, method: str, path: str, body: str | None, media: str) -> tuple[int, str, float | None]:
        headers = {"accept": "application/json"}
        if self.token is not None:
            headers["authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers["content-type"] = media
        connection: http.client.HTTPConnection
        if self._is_tls:
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=self.timeout, context=self.context)
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self.timeout)
        try:
            try:
                connection.request(method, self._path + path, None if body is None else body.encode(), headers)
            except (BrokenPipeError, ConnectionResetError):
                # A server that refuses a large body answers before it has read all of it.
                if connection.sock is None:
                    raise
            response = connection.getresponse()
            text = response.read().decode()
            return response.status, text, _seconds(response.headers.get("retry-after"))
        except ssl.SSLCertVerificationError:
            raise
        except (OSError, http.client.HTTPException, socket.timeout) as error:
            raise Unreachable(f"{method} {self.url}{_PREFIX}{path}: {error or type(error).__name__}") from error
        finally:
            connection.close()


def _job(job: Mapping[str, Any]) -> str:
    for name in ("type", "payload"):
        if name not in job:
            raise ValueError(f"{name}: expected one in every job; got none; add it")
    said = {name: value for name, value in job.items() if name != "payload" and (value is not None or name == "deadline")}
    said.setdefault("id", str(uuid.uuid4()))
    payload = job["payload"]
    text = payload.text if isinstance(payload, _Raw) else _text(payload)
    if isinstance(payload, _Raw):
        # A line of NDJSON has no line break; outside of its strings JSON has one only between values.
        text = text.replace("\r", " ").replace("\n", " ")
    return f'{_text(said)[:-1]}, "payload": {text}}}'


def _text(value: Any) -> str:
    if isinstance(value, dict):
        value = {name: each for name, each in value.items() if not (name == "why" and each is None)}
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def _query(fields: Mapping[str, Any]) -> str:
    said = {name: value for name, value in fields.items() if value is not None}
    return urllib.parse.urlencode({n: str(v).lower() if isinstance(v, bool) else v for n, v in said.items()})


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdigit() else None


def _error(status: int, text: str, retry_after: float | None) -> RedriveError:
    try:
        said = json.loads(text)
    except ValueError:
        said = None
    return RedriveError(status, said if isinstance(said, dict) else {}, retry_after)
