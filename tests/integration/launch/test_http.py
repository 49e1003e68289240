"""The `http:` source: each request is a run, and its answer says what became of it; over real sockets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from iocflow.events import on_event
from iocflow.sequence import SequenceProcessor
from iocflow.store.errors import StoreLostError
from tests.integration.launch.web import TOKEN, Background, Shop, Web
from tests.web import JSON, Answer, ask

Make = Callable[..., Web]


# What is answered.


def test_without_a_store_the_answer_is_the_runs_outcome(web: Web) -> None:
    """A run that is not recorded is waited for: 200 when it is dealt with, 500 with the reason when it is not."""
    done = web.post({"number": 1})
    assert (done.status, done.json["outcome"], len(done.json["run"])) == (200, "completed", 36)
    assert web.post({"number": 2, "what": "stop"}).json["outcome"] == "stopped"
    failed = web.post({"number": 3, "what": "fail"})
    assert (failed.status, failed.headers["content-type"]) == (500, "application/problem+json")
    assert (failed.json["detail"], failed.json["outcome"]) == ("ValueError: out of stock", "failed")
    assert failed.json["activity"] == "act"
    assert web.post({"number": 4, "what": "exit"}).json["outcome"] == "interrupted"
    assert [one.number for one in web.seen] == [1, 2, 3, 4]
    assert web.counts() == {"started": 4, "completed": 1, "stopped": 1, "failed": 1, "interrupted": 1}


def test_with_a_store_the_answer_is_the_recorded_run(durable: Web) -> None:
    """A durable run is answered once it is recorded, with its id and where to ask for its status."""
    answer = durable.post({"number": 1})
    assert (answer.status, answer.json) == (202, {"run": "1", "status": "/orders/runs/1"})
    assert answer.headers["location"] == "/orders/runs/1"
    asked = ask(durable.port, "GET", "/orders/runs/1")
    assert (asked.status, asked.json["state"], asked.json["processor"]) == (200, "queued", "order")
    assert durable.seen == []
    durable.app.run_until_idle()
    assert ask(durable.port, "GET", "/orders/runs/1").json["state"] == "completed"
    assert durable.post({"number": 2, "what": "fail"}).status == 202
    durable.app.run_until_idle()
    told = ask(durable.port, "GET", "/orders/runs/2").json
    assert (told["state"], told["error"]["message"]) == ("failed", "out of stock")
    assert ask(durable.port, "HEAD", "/orders/runs/2").body == b""


def test_the_same_key_gives_the_same_run(durable: Web) -> None:
    """A repeated key with the same body is the same run, also when that has ended; with another body it is refused."""
    first = durable.post({"number": 1}, Idempotency_Key="k1")
    assert durable.post({"number": 1}, Idempotency_Key='"k1"').json == first.json
    durable.app.run_until_idle()
    assert durable.post({"number": 1}, Idempotency_Key="k1").json == first.json
    other = durable.post({"number": 2}, Idempotency_Key="k1")
    assert (other.status, "run 1" in other.json["detail"]) == (409, True)
    assert durable.post({"number": 1}, Idempotency_Key="k2").json["run"] == "2"
    assert len(durable.app.runs()) == 2


def test_the_same_key_of_a_failed_run_gives_that_run(durable: Web) -> None:
    """A repeated key whose run has failed is answered as a recorded run: its status tells the rest."""
    for _ in range(2):
        answer = durable.post({"number": 1, "what": "fail"}, Idempotency_Key="k")
        assert (answer.status, answer.json["run"]) == (202, "1")
        durable.app.run_until_idle()
    assert [one.number for one in durable.seen] == [1]


def test_cloud_events(durable: Web) -> None:
    """Structured or in headers, a CloudEvent's source and id are its key, and its data is the seed."""
    event = {"specversion": "1.0", "id": "e1", "source": "/erp", "type": "order", "data": {"number": 1}}
    first = durable.post(event, Content_Type="application/cloudevents+json")
    headers = {"ce_id": "e1", "ce_source": "%2Ferp", "ce_specversion": "1.0", "ce_type": "order"}
    assert durable.post({"number": 1}, **headers).json == first.json
    assert durable.post({"number": 2}, **headers).status == 409
    assert durable.post({"number": 1}, **{**headers, "ce_source": "/crm"}).json["run"] == "2"
    assert durable.app.status("order", "/erp#e1").id == 1


BAD = [
    (b"{", "not JSON"),
    (b"\xff", "not UTF-8"),
    (b"", "not JSON"),
    (b"null", "it has no data"),
    (b'{"specversion": "1.0", "id": "1"}', "it has no data"),
    (b"[" * 100_000, "nested too deeply"),
    (b'{"number": NaN}', "no JSON number"),
    (b'{"number": "many"}', "seed.number: 'many' is not int"),
    (b'{"numbre": 1}', "seed.number is missing"),
    (b"17", "seed"),
]


@pytest.mark.parametrize("kept", [False, True], ids=["inline", "durable"])
@pytest.mark.parametrize(("body", "why"), BAD, ids=[repr(one[0][:20]) for one in BAD])
def test_bad_bodies(make: Make, tmp_path: Path, body: bytes, why: str, kept: bool) -> None:
    """What is no event, or no seed of the processor, is refused with the reason, and nothing runs or is recorded."""
    web = make(store=f"sqlite:///{tmp_path}/app.db" if kept else None)
    answer = web.post(body)
    assert (answer.status, why in answer.json["detail"]) == (400, True), answer
    assert web.seen == []
    assert not kept or web.app.runs() == []


def test_other_refusals(make: Make) -> None:
    """Each thing that is wrong with a request has its own status, and the answer says what to do instead."""
    web = make("?limit=100B")
    assert ask(web.port, "POST", "/", {"number": 1}).status == 404
    assert ask(web.port, "POST", "/orders/", {"number": 1}).status == 404
    assert ask(web.port, "GET", "/orders/runs/1").status == 404
    got = ask(web.port, "GET", "/orders")
    assert (got.status, got.headers["allow"]) == (405, "POST")
    assert ask(web.port, "POST", "/orders/runs/1", {}).headers["allow"] == "GET, HEAD"
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1", "json"):
        assert web.post({"number": 1}, Content_Type=kind).status == 415
    assert web.post({"number": 1}, Content_Encoding="gzip").status == 415
    assert web.post({"number": 1}, Content_Type="application/vnd.acme+json; charset=UTF-8").status == 200
    assert web.post({"number": 1, "what": "x" * 100}).status == 413
    for key in ("", "\t", "x" * 256):
        assert web.post({"number": 1}, Idempotency_Key=key).status == 400
    assert web.post({"number": 1}, ce_id="1").json["detail"].endswith("needs ce-specversion and ce-source")
    assert web.post({"number": 1}, Content_Type="application/cloudevents+json").status == 400
    assert len(web.seen) == 1


def test_a_token(make: Make, tmp_path: Path) -> None:
    """With a token nobody gets in without it, to post or to ask; it stands in no name and in no answer."""
    web = make(f"?token={TOKEN}", store=f"sqlite:///{tmp_path}/app.db")
    right = f"Bearer {TOKEN}"
    for wrong in ("", "Bearer", "Bearer x", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer \xe9"):
        answer = web.post({"number": 1}, Authorization=wrong)
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert TOKEN not in repr(answer)
    assert web.post({"number": 1}).status == 401
    assert web.post({"number": 1}, Authorization=right).status == 202
    assert ask(web.port, "GET", "/orders/runs/1").status == 401
    assert ask(web.port, "GET", "/orders/runs/1", Authorization=right).status == 200
    assert ask(web.port, "GET", "/orders/runs/1/x", Authorization=right).status == 404
    source = web.launchers[0].source
    assert TOKEN not in f"{source.name} {source.identity} {web.daemon.snapshot()} {getattr(source, 'options', '')!r}"


@pytest.mark.parametrize("kept", [False, True], ids=["inline", "durable"])
def test_secrets_are_masked(make: Make, tmp_path: Path, kept: bool) -> None:
    """What an error says of a secret reaches no client, neither in the answer nor in a run's status."""
    web = make(store=f"sqlite:///{tmp_path}/app.db" if kept else None)
    web.app.secrets.add("hunter2hunter2")
    answer = web.post({"number": 1, "what": "leak"})
    if kept:
        web.app.run_until_idle()
        answer = ask(web.port, "GET", answer.json["status"])
    assert b"password *** refused" in answer.body
    assert b"hunter2" not in answer.body


def test_runs_of_other_processors_are_not_told(tmp_path: Path) -> None:
    """The status of a run is told only where runs of its processor are posted."""
    web = Web(store=f"sqlite:///{tmp_path}/app.db")
    web.processors.append(SequenceProcessor([web.act], context=Shop, name="return"))
    web.launchers.append(on_event(f"http:{web.port}/returns", web.processors[1]))
    web.start()
    try:
        assert ask(web.port, "POST", "/returns", {"number": 1}).json["status"] == "/returns/runs/1"
        assert ask(web.port, "GET", "/returns/runs/1").status == 200
        assert ask(web.port, "GET", "/orders/runs/1").status == 404
    finally:
        web.stop()


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:80"])
def test_a_page_in_a_browser(web: Web, host: str) -> None:
    """Without a token, a name that somebody had resolved to this machine is not let in."""
    assert web.post({"number": 1}, Host=host).status == 421
    assert web.post({"number": 1}, Host="localhost:1234").status == 200
    assert len(web.seen) == 1


# Backpressure.


def test_a_request_waits_for_a_thread(make: Make) -> None:
    """Requests beyond the pool wait their turn, and all of them are answered."""
    web = make(pool=1)
    web.go.clear()
    asked = [Background(lambda number=number: web.post({"number": number})) for number in range(5)]
    web.wait_for(lambda: len(web.seen) == 1)
    web.go.set()
    assert [one.wait().status for one in asked] == [200] * 5
    assert sorted(one.number for one in web.seen) == [0, 1, 2, 3, 4]


def test_no_thread_comes_free(make: Make) -> None:
    """Who waited in vain, and who found the line full, is told when to try again, and nothing of theirs runs."""
    web = make("?wait=300ms&waiting=1", pool=1)
    web.go.clear()
    first = Background(lambda: web.post({"number": 1}))
    web.wait_for(lambda: len(web.seen) == 1)
    second = Background(lambda: web.post({"number": 2}))
    desk = web.launchers[0].source._desk
    web.wait_for(lambda: len(desk._line) == 1)
    third = web.post({"number": 3})
    assert (third.status, third.headers["retry-after"]) == (429, "1")
    waited: Answer = second.wait()
    assert (waited.status, waited.headers["retry-after"]) == (503, "1")
    web.go.set()
    assert first.wait().status == 200
    assert web.post({"number": 4}).status == 200
    assert [one.number for one in web.seen] == [1, 4]


def test_the_store_is_away(durable: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that takes no run is told as 503 with Retry-After; it is recorded at another try, with the same key."""
    store = durable.app.client.store
    submit, lost = store.submit, [StoreLostError("the server is gone")]

    def losing(*arguments: Any, **terms: Any) -> Any:
        if lost:
            raise lost.pop()
        return submit(*arguments, **terms)

    monkeypatch.setattr(store, "submit", losing)
    answer = durable.post({"number": 1}, Idempotency_Key="k")
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
    assert durable.post({"number": 1}, Idempotency_Key="k").status == 202
    assert len(durable.app.runs()) == 1


def test_the_same_event_twice_at_once(web: Web) -> None:
    """Who sends an event again while it is in hand waits with the first one; another one under its key is refused."""
    web.go.clear()
    with ExitStack() as ending:
        senders = [ending.enter_context(closing(HTTPConnection("127.0.0.1", web.port, timeout=20))) for _ in range(3)]
        for sender in senders:
            sender.request("POST", web.path, b'{"number": 1}', {**JSON, "Idempotency-Key": "k"})
        web.wait_for(lambda: len(web.seen) == 1)
        for _ in range(3):  # what was sent before is read before
            assert web.post({"number": 2}, Idempotency_Key="k").status == 409
        web.go.set()
        answers = [sender.getresponse() for sender in senders]
        runs = {json.loads(answer.read())["run"] for answer in answers}
    assert ([answer.status for answer in answers], len(runs)) == ([200] * 3, 1)
    assert len(web.seen) == 1


def test_two_hundred_at_once(durable: Web) -> None:
    """Of two hundred posts at once each is recorded once, and answered with its own run."""
    with ThreadPoolExecutor(200) as pool:
        answers = list(pool.map(lambda number: durable.post({"number": number}), range(200)))
    assert Counter(one.status for one in answers) == {202: 200}
    assert len({one.json["run"] for one in answers}) == 200
    durable.app.run_until_idle()
    assert sorted(one.number for one in durable.seen) == list(range(200))
