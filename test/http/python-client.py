"""Plays clients/python/redrive_client.py against a real server; prints OK at the end. The test in front of the server breaks
what the path /fault/<what> asks for: the next answers, or the handler of the job."""

import http.client
import json
import os
import sys
import urllib.parse

from redrive_client import Client, JobDead, RedriveError, Retries, Unreachable, WaitTimeout, raw_json

URL = os.environ["REDRIVE_URL"]
QUICK = Retries(attempts=4, seconds=20, first=0.01, longest=0.05)
client = Client(URL, token="operator+payloads", retries=QUICK)


def fault(what: str) -> int:
    """Asks for faults; answers how many requests the server has had since the last time."""
    parts = urllib.parse.urlsplit(URL)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    connection.request("POST", f"/fault/{what}")
    return int(connection.getresponse().read())


def refused(status, code, call):
    try:
        call()
    except RedriveError as error:
        assert (error.status, error.code) == (status, code), (error.status, error.code, str(error))
        assert error.request_id and str(error), vars(error)
        return error
    raise AssertionError(f"expected {status} {code}")


# The old worker's story: enqueue, fail, dead letter, retry of one cause, done.
fault("handler-down")
payload = raw_json('{"n": 9007199254740993,\n "file": "a.mp4"}')
job = client.enqueue("pay", payload, key="a.mp4", tenant="acme", priority=3)
assert job["duplicate"] is False and job["state"] == "queued", job
other = client.enqueue("odd", {"n": 1})
for each in (job, other):
    try:
        client.wait(each["id"], timeout=30)
        raise AssertionError("it should have died")
    except JobDead as dead:
        assert dead.job["state"] == "dead" and dead.job["history"], dead.job
        print(dead)
letters = list(client.dead_letters(type="pay"))
assert [letter["id"] for letter in letters] == [job["id"]] and letters[0]["payload"]["n"] == 9007199254740993, letters
cause = letters[0]["failure"]["fingerprint"]
fault("handler-up")
assert client.retry_cause(cause, why="fixed") == 1
assert client.retry_cause(cause, why="fixed") == 0
done = client.wait(job["id"], timeout=30)
assert done["state"] == "completed" and done["result"] == {"paid": "a.mp4"} and done["generation"] == 2, done
assert client.get(other["id"])["state"] == "dead"
client.retry(other["id"], why="by hand")
assert client.wait(other["id"], timeout=30)["state"] == "completed"

# Many at once: more than one part, a generator, a bad one among them.
answers = list(client.enqueue_many({"type": "later", "payload": n, "delay": "1h"} if n != 7 else {"type": "a b", "payload": n} for n in range(1_203)))
assert [answer["line"] for answer in answers] == list(range(1, 1_204))
assert answers[7]["error"]["code"] == "invalid_argument" and "a b" in answers[7]["error"]["message"], answers[7]
assert sum(1 for answer in answers if answer.get("duplicate") is False) == 1_202

# What the server refuses is tried once.
fault("count")
refused(401, "unauthenticated", lambda: Client(URL, token="nobody").enqueue("pay", 1))
refused(403, "forbidden", lambda: Client(URL, token="producer").retry(job["id"]))
refused(404, "not_found", lambda: client.get("none"))
conflict = refused(409, "conflict", lambda: client.enqueue("pay", {"n": 2}, key="a.mp4"))
assert conflict.details["id"] == job["id"], conflict.details
unknown = refused(400, "invalid_argument", lambda: client.enqueue("pay", 1, prioritty=1))
assert "priority" in str(unknown) + str(unknown.hint), unknown
count = fault("count")
assert count == 5, count
# The server may close the connection before it has read all of it, so that the client has to come again for the answer.
refused(413, "payload_too_large", lambda: client.enqueue("pay", "x" * 2_000_000))

# What passes is tried again, and not before the server says so; a repeated enqueue makes no second job.
fault("full")
assert client.enqueue("later", 1, delay="1h")["duplicate"] is False
assert fault("count") == 2
for broken in ("503", "reset", "lost", "short"):
    fault(f"{broken},{broken}")
    answer = client.enqueue("later", broken, delay="1h", key=broken)
    assert answer["duplicate"] is (broken in ("lost", "short")), (broken, answer)
    assert fault("count") == 3, broken
    fault(broken)
    line = list(client.enqueue_many([{"type": "later", "payload": broken, "delay": "1h"}]))
    assert [("error" in each, each["line"]) for each in line] == [(False, 1)], line
fault("503,503,503,503")
assert refused(503, "store_unavailable", lambda: client.get(job["id"])).retry_after == 0
fault("503")
refused(503, "store_unavailable", lambda: client.retry(job["id"]))
assert fault("count") == 1, "a call that may count twice is tried once"

# Time-outs.
fault("silent,silent")
try:
    Client(URL, token="viewer", timeout=0.2, retries=Retries(attempts=2, first=0.01)).get(job["id"])
    raise AssertionError("expected no answer")
except Unreachable as error:
    assert job["id"] in str(error), error
try:
    client.wait(client.enqueue("later", 1, delay="1h")["id"], timeout=0.1)
    raise AssertionError("expected a wait that ends")
except WaitTimeout as error:
    assert error.job["shown"] == "scheduled", error.job
try:
    Client("http://127.0.0.1:9", retries=Retries(attempts=2, first=0.01)).get("x")
    raise AssertionError("expected nobody there")
except Unreachable:
    pass

# Bad input of the caller.
for call in (
    lambda: Client("127.0.0.1:4180"),
    lambda: Client(URL, timeout=0),
    lambda: client.enqueue("pay", float("nan")),
    lambda: raw_json("{nope"),
    lambda: list(client.enqueue_many([{"type": "pay"}])),
):
    try:
        call()
    except ValueError as error:
        assert str(error), error
    else:
        raise AssertionError("expected a ValueError")
assert "operator" not in repr(client)
print("OK", sys.version_info[:2], json.dumps(len(answers)))
