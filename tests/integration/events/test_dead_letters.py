"""`iocflow events`: the dead letters of real sources, listed, shown and replayed from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker import Queue, eventually
from tests.integration.events.conftest import Bench, source

CONTAINER = """
iocflow: 1
package: letters_app
processors:
  p: {{context: .Any, sequence: [.act]}}
launchers:
  messages: {{processor: p, source: "{address}"}}
  memory: {{processor: p, source: "memory:x"}}
  timer: {{processor: p, every: 1h}}
"""
MODULE = """
import typing

from iocflow import ProcessContext


class Any(ProcessContext):
    seed_data: typing.Any


def act(context: Any) -> None:
    pass
"""

Events = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def events(tmp_path: Path) -> Events:
    """Return a function that runs `iocflow events`; the first argument is the source's address."""
    (tmp_path / "letters_app.py").write_text(MODULE, encoding="utf-8")

    def run(address: str, *arguments: str, launcher: str = "messages") -> subprocess.CompletedProcess[bytes]:
        (tmp_path / "app.yaml").write_text(CONTAINER.format(address=address), encoding="utf-8")
        command = [str(Path(sys.executable).with_name("iocflow")), "events", arguments[0], "app.yaml", launcher]
        return subprocess.run([*command, *arguments[1:]], cwd=tmp_path, capture_output=True, check=False, timeout=60)

    return run


RAW = [b' {"n": 1,\n "text": "\xc3\xa9"}', b"\xff\x00\xfe", b'"bad"']


def fail(bench: Bench, queue: Queue) -> None:
    """Leave three dead letters."""
    queue.send(
        RAW[0],
        content_type="application/xml",
        application_headers={"specversion": 1, "ce-specversion": "1.0", "ce-time": "x"},
    )
    queue.send(RAW[1], message_id="m2", application_headers={"x": 1, "deep": {"a": [True, None]}})
    queue.send(RAW[2], message_id="m3", content_type="application/json")
    bench.start(source(queue.address))
    eventually(lambda: bench.counts().get("refused") == 2 and bench.counts().get("failed") == 1)
    bench.finish()


@pytest.mark.service("amqp")
def test_those_of_rabbitmq(bench: Bench, queue: Queue, events: Events) -> None:
    """They are listed without being taken, shown byte for byte, and replayed as they came, in their own time."""
    fail(bench, queue)
    for _ in range(2):
        listed = json.loads(events(queue.address, "list", "--json").stdout)
        assert len(listed) == 3
    by_reason = {one["reason"]: one for one in listed}
    assert {one["launcher"] for one in listed} == {"x"}
    failed = by_reason["ValueError: bad it is"]
    assert (failed["activity"], failed["event_id"], failed["body"], failed["headers"]) == (
        "act", "m3", '"bad"', {"message_id": "m3", "content_type": "application/json", "delivery_mode": 2},
    )  # fmt: skip
    assert failed["run_id"]
    assert failed["at"]
    table = events(queue.address, "list").stdout.decode()
    assert table.endswith("\n3 dead letters\n")
    undecodable = by_reason["refused: not UTF-8 at byte 0"]
    assert events(queue.address, "show", undecodable["id"], "--raw").stdout == RAW[1]
    assert json.loads(events(queue.address, "show", undecodable["id"], "--json").stdout)["body_base64"] == "/wD+"
    shown = events(queue.address, "show", failed["id"]).stdout.decode()
    assert "ValueError: bad it is" in shown
    assert "header message_id" in shown

    done = events(queue.address, "replay", undecodable["id"], failed["id"])
    assert (done.returncode, done.stdout) == (0, b"2 events replayed\n")
    assert (queue.ready(queue.dead), queue.ready()) == (1, 2)
    came = [queue.channel.basic_get(queue.name, no_ack=True) for _ in range(2)]
    assert sorted(one.body for one in came) == sorted([RAW[1], RAW[2]])
    (again,) = [one for one in came if one.body == RAW[1]]
    headers = again.properties["application_headers"]
    assert headers.pop("x-iocflow-replayed").startswith(undecodable["id"])
    assert headers == {"x": 1, "deep": {"a": [True, None]}}
    assert again.properties["message_id"] == "m2"


@pytest.mark.service("amqp")
def test_a_replayed_message_is_run(bench: Bench, queue: Queue, events: Events) -> None:
    """After what made it fail is repaired, it is run, though its id was dealt with before by the same daemon."""
    queue.send(b'"bad"', message_id="m1")
    bench.start(source(queue.address))
    eventually(lambda: bench.counts().get("failed") == 1)
    eventually(lambda: queue.ready(queue.dead) == 1)
    done = events(queue.address, "replay", "--all", "--json")
    assert done.returncode == 0
    assert len(json.loads(done.stdout)["replayed"]) == 1
    eventually(lambda: bench.times()["bad"] == 2)
    eventually(lambda: queue.ready(queue.dead) == 1)


@pytest.mark.service("redis")
def test_those_of_redis(bench: Bench, redis_address: str, events: Events) -> None:
    """The same with Redis: listed in order and left in place, then replayed."""
    import redis  # noqa: PLC0415

    name = redis_address.partition("?queue=")[2]
    with redis.Redis.from_url(redis_address.partition("?")[0]) as client:
        client.lpush(name, b"\xff", b'"bad"')
        bench.start(source(redis_address))
        eventually(lambda: client.llen(f"{name}.dead") == 2)
        bench.finish()
        for _ in range(2):
            listed = json.loads(events(redis_address, "list", "--json").stdout)
            assert [one.get("body", one.get("body_base64")) for one in listed] == ["/w==", '"bad"']
        assert client.llen(f"{name}.dead") == 2
        assert events(redis_address, "show", listed[0]["id"], "--raw").stdout == b"\xff"
        assert events(redis_address, "replay", "--all").returncode == 0
        assert (client.llen(f"{name}.dead"), client.llen(name)) == (0, 2)


def test_those_of_a_folder(events: Events, tmp_path: Path) -> None:
    """Files that failed come again from the inbox; without any, and with a wrong name, the commands say so."""
    address = "folder:inbox"
    assert events(address, "list").stdout == b"0 dead letters\n"
    assert events(address, "list", "--json").stdout == b"[]\n"
    failed = tmp_path / "inbox" / "failed"
    failed.mkdir(parents=True)
    (failed / "a.json").write_bytes(RAW[1])
    record = {"failed_at": "2026-03-01T06:00:00+00:00", "reason": "no \x1b[31m", "launcher": "x", "processor": "p"}
    (failed / "a.json.reason.json").write_text(json.dumps({"file": "a.json", **record}))
    assert b"\x1b" not in events(address, "list").stdout
    assert events(address, "show", "a.json", "--raw").stdout == RAW[1]
    missing = events(address, "show", "b.json")
    assert (missing.returncode, missing.stderr) == (
        1,
        b"iocflow: there is no dead letter b.json; did you mean `a.json`?\n",
    )
    partly = events(address, "replay", "b.json", "a.json")
    assert (partly.returncode, partly.stdout) == (1, b"1 event replayed\n")
    assert (tmp_path / "inbox" / "a.json").read_bytes() == RAW[1]
    assert list(failed.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "launcher", "code", "why"),
    [
        (["list"], "mesages", 2, "app.yaml has no launcher mesages; did you mean `messages`?"),
        (["list"], "timer", 2, "launcher timer has no source of events; those with one: messages, memory"),
        (
            ["list"],
            "memory",
            2,
            "launcher memory reads memory:x, which keeps no dead letters that a command could reach",
        ),
        (["replay"], "messages", 2, "name the dead letters by what the list calls them, or write --all"),
        (["replay", "a", "--all"], "messages", 2, "or write --all"),
        (["show", "a", "--raw", "--json"], "messages", 2, "choose one"),
        (["show", "a"], "messages", 1, "there is no dead letter a; there is none at all"),
    ],
)
def test_what_cannot_be(events: Events, arguments: list[str], launcher: str, code: int, why: str) -> None:
    """Wrong use ends with status 2, what is not there with 1, each in one sentence."""
    done = events("folder:inbox", *arguments, launcher=launcher)
    assert (done.returncode, done.stdout) == (code, b"")
    assert why in done.stderr.decode()


def test_a_broker_that_is_not_there(events: Events) -> None:
    """The command ends with status 1, names the broker, and not the password."""
    done = events("amqp://u:hunter2hunter2@127.0.0.1:1/?queue=q", "list")
    assert done.returncode == 1
    assert "amqp://127.0.0.1:1/%2F?queue=q cannot be reached" in done.stderr.decode()
    assert "hunter2" not in done.stderr.decode()
