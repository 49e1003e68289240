"""The `http:` source and clients that are slow, greedy, wrong or gone; how it starts and how it stops."""

from __future__ import annotations

import http.client
import re
import socket
import threading
from collections.abc import Callable

import pytest

from iocflow.events import on_event
from iocflow.launch import ExitCode
from iocflow.launch.http import connection as connections
from iocflow.launch.http import service as services
from iocflow.sequence import SequenceProcessor
from tests.integration.launch.web import TOKEN, Background, Shop, Web, raw, read_all
from tests.web import JSON, PATIENT, ask, free_port

Make = Callable[..., Web]


# Clients that misbehave.


def test_a_slow_head(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that takes too long over its head is told so and cut off, while others are served."""
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", web.port), timeout=PATIENT) as slow:
        slow.sendall(b"POST /orders HTTP/1.1\r\nHost: localhost\r\n")
        assert web.post({"number": 1}).status == 200
        assert read_all(slow).startswith(b"HTTP/1.1 408 ")


def test_a_slow_body(make: Make) -> None:
    """A body that drips in more slowly than it may is not waited for, however often a byte of it comes."""
    web = make("?timeout=300ms")
    with socket.create_connection(("127.0.0.1", web.port), timeout=PATIENT) as slow:
        slow.sendall(web.request(b"{", Content_Length="1000"))
        dripping = threading.Event()

        def drip() -> None:
            while not dripping.wait(0.05):
                try:
                    slow.sendall(b" ")
                except OSError:
                    return

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            assert read_all(slow).startswith(b"HTTP/1.1 408 ")
        finally:
            dripping.set()
            thread.join()
    assert web.seen == []


def test_a_silent_client(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection without a request is closed after a while, without a word."""
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.2)
    assert raw(web.port) == b""


@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_a_huge_body(make: Make, framing: str) -> None:
    """A body that is too large is refused before it is read, or once the limit is passed; the client gets to know."""
    web = make("?limit=10kB")
    with socket.create_connection(("127.0.0.1", web.port), timeout=PATIENT) as one:
        how = {"Content_Length": str(10**12)} if framing == "length" else {"Transfer_Encoding": "chunked"}
        one.sendall(web.request(b"", **how))
        answer = Background(lambda: read_all(one))
        try:
            for _ in range(1000):
                one.sendall(b"4000\r\n" + b" " * 0x4000 + b"\r\n")
        except OSError:
            pass  # that is what happens to it
        assert answer.wait().startswith(b"HTTP/1.1 413 ")
    assert web.post({"number": 1}).status == 200


def test_expect_continue(make: Make) -> None:
    """A client that asks before it sends its body is told to go on, or is refused without sending it."""
    web = make("?limit=100B")
    body = b'{"number": 1}'
    ask_first = {"Expect": "100-continue", "Connection": "close"}
    with socket.create_connection(("127.0.0.1", web.port), timeout=PATIENT) as one:
        one.sendall(web.request(b"", Content_Length=str(len(body)), **ask_first))
        assert one.recv(1000).startswith(b"HTTP/1.1 100 ")
        one.sendall(body)
        assert read_all(one).startswith(b"HTTP/1.1 200 ")
    assert raw(web.port, web.request(b"", Content_Length="1000", **ask_first)).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_a_cut_connection(web: Web, reset: bool) -> None:
    """A request that does not come whole is none: nothing runs, whether its connection was closed or cut."""
    for sent in (
        b"POST /ord",
        web.request(b"", Content_Length="13"),
        web.request(b'{"number": 1', Content_Length="13"),
    ):
        with socket.create_connection(("127.0.0.1", web.port), timeout=PATIENT) as one:
            one.sendall(sent)
            if reset:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert web.post({"number": 9}).status == 200
    assert [one.number for one in web.seen] == [9]


def test_a_client_that_leaves_before_the_answer(web: Web) -> None:
    """A request that came whole is carried out to its end, whether or not anybody still waits for the answer."""
    web.go.clear()
    body = b'{"number": 1}'
    with socket.create_connection(("127.0.0.1", web.port), timeout=PATIENT) as one:
        one.sendall(web.request(body, Content_Length=str(len(body))))
        web.wait_for(lambda: len(web.seen) == 1)
    web.go.set()
    web.wait_for(lambda: web.counts() == {"started": 1, "completed": 1})
    assert web.post({"number": 2}).status == 200


def test_a_client_that_only_stops_sending(web: Web) -> None:
    """A client that has closed its own direction still gets its answer."""
    body = b'{"number": 1}'
    assert raw(web.port, web.request(body, Content_Length=str(len(body))), hang_up=True).startswith(b"HTTP/1.1 200 ")


def test_pipelining(web: Web) -> None:
    """Requests that are sent without waiting for answers are answered in their order, byte by byte or all at once."""
    one, last = b'{"number": 1}', b'{"number": 2}'
    sent = web.request(one, Content_Length=str(len(one))) + b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"
    sent += web.request(last, Content_Length=str(len(last)), Connection="close")
    for parts in ([sent], [bytes([byte]) for byte in sent]):
        got = raw(web.port, *parts)
        statuses = re.findall(rb"HTTP/1\.1 (\d+)", got)
        assert statuses == [b"200", b"404", b"200"]
    assert [one.number for one in web.seen] == [1, 2, 1, 2]


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize(
    ("start", "body", "status"),
    [
        ("POST /orders", b'{"number": 1}', b"200"),
        ("POST /orders", b"", b"400"),
        ("POST /nothing", b'{"number": 1}', b"404"),
        ("GET /orders/runs/1", b"", b"404"),
        ("GET /orders", b"", b"405"),
    ],
)
def test_the_last_request_of_a_connection(web: Web, version: str, start: str, body: bytes, status: bytes) -> None:
    """A request that says that it is the last is answered at once, whatever it is, and its connection ends."""
    head = f"{start} HTTP/{version}\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    got = raw(web.port, f"{head}{length}\r\n".encode() + body)
    assert re.findall(rb"HTTP/1\.1 (\d+)", got) == [status]
    assert b"\r\nConnection: close\r\n" in got


@pytest.mark.parametrize(
    "headers",
    [
        "Content-Length: 13\r\nContent-Length: 14",
        "Content-Length: -1",
        "Content-Length: +13",
        "Content-Length: 0x0d",
        "Content-Length: 13, 14",
        f"Content-Length: {'9' * 30}",
        "Content-Length: 13\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 13",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "No colon",
        "Na me: x",
        "X: a\0b",
        f"X: {'y' * 40_000}",
    ],
)
def test_wrong_heads(web: Web, headers: str) -> None:
    """A head that two readers might take for two things is refused, and what follows it is no request."""
    head = f"POST /orders HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}\r\n\r\n"
    got = raw(web.port, head.encode() + b'{"number": 1}' + web.request(b'{"number": 2}', Content_Length="13"))
    statuses = re.findall(rb"HTTP/1\.1 (\d+)", got)
    assert len(statuses) == 1
    assert statuses[0] in (b"400", b"413", b"431", b"501")
    assert web.seen == []


@pytest.mark.parametrize(
    "start", ["POST /orders HTTP/0.9", "POST /orders HTTP/2.0", "\x16\x03\x01\x02", "POST  /orders"]
)
def test_no_http(web: Web, start: str) -> None:
    """What is no HTTP/1 is refused, also what a client of TLS or HTTP/2 says, and does no harm."""
    assert raw(web.port, f"{start}\r\nHost: localhost\r\n\r\n".encode(), hang_up=True).startswith(
        (b"HTTP/1.1 400 ", b"HTTP/1.1 505 ")
    )
    assert web.post({"number": 1}).status == 200


def test_too_many_connections(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections beyond the bound are told to come again, and those far beyond are cut; one that ends makes room."""
    monkeypatch.setattr(services, "CONNECTIONS", 3)
    monkeypatch.setattr(services, "REFUSED", 2)
    held = [socket.create_connection(("127.0.0.1", web.port), timeout=PATIENT) for _ in range(3)]
    try:
        got = raw(web.port, hang_up=True)
        assert got.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nRetry-After: 1\r\n" in got
    finally:
        for one in held:
            one.close()
    web.wait_for(lambda: ask(web.port, "GET", "/orders").status == 405)


def test_an_error_in_an_answer(web: Web, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A fault of ours is 500 without a word of it, is in the log, and ends no other connection."""
    desk = web.launchers[0].source._desk
    monkeypatch.setattr(desk, "_deliver", lambda event: 1 / 0)
    answer = web.post({"number": 1})
    assert (answer.status, "ZeroDivision" in answer.body.decode()) == (500, False)
    assert "ZeroDivisionError" in caplog.text
    monkeypatch.undo()
    assert web.post({"number": 1}).status == 200


# Living and ending.


def test_two_launchers_share_a_port() -> None:
    """Two launchers with different paths share one address, each with its own token and limits."""
    web = Web()
    others: list[int] = []

    def note(context: Shop) -> None:
        others.append(context.seed_data.number)

    other = SequenceProcessor([note], context=Shop, name="return")
    web.launchers.append(
        on_event(f"http:127.0.0.1:{web.port}/orders/back?token={TOKEN}", other, name="returns"),
    )
    try:
        web.start()
        assert web.post({"number": 1}).status == 200
        assert ask(web.port, "POST", "/orders/back", {"number": 2}).status == 401
        assert ask(web.port, "POST", "/orders/back", {"number": 2}, Authorization=f"Bearer {TOKEN}").status == 200
    finally:
        web.stop()
    assert ([one.number for one in web.seen], others) == ([1], [2])


def test_a_site_that_has_left_says_so() -> None:
    """While another source has the port, who posts to one that was closed is sent away, and not told it never was."""
    web = Web()
    web.launchers.append(on_event(f"http:127.0.0.1:{web.port}/returns", web.processor, name="returns"))
    try:
        web.start()
        kept = http.client.HTTPConnection("127.0.0.1", web.port, timeout=PATIENT)
        kept.request("POST", "/returns", b'{"number": 1}', JSON)
        with kept.getresponse() as answer:
            assert (answer.status, len(answer.read()) > 0) == (200, True)
        web.launchers[1].source.close()
        kept.request("POST", "/returns", b'{"number": 2}', JSON)
        with kept.getresponse() as answer:
            assert (answer.status, answer.headers["retry-after"]) == (503, "5")
        kept.close()
        assert web.post({"number": 3}).status == 200
    finally:
        web.stop()
    assert [one.number for one in web.seen] == [1, 3]


def test_stopping() -> None:
    """At the stop runs in hand are answered, who waits or comes is sent away, and in the end nobody listens."""
    again = Web(pool=1).start()
    try:
        again.go.clear()
        in_hand = Background(lambda: again.post({"number": 1}))
        again.wait_for(lambda: len(again.seen) == 1)
        waiting = Background(lambda: again.post({"number": 2}))
        desk = again.launchers[0].source._desk
        kept = socket.create_connection(("127.0.0.1", again.port), timeout=PATIENT)
        again.daemon.stop()
        refused = waiting.wait()
        assert (refused.status, refused.headers["retry-after"]) == (503, "5")
        again.wait_for(lambda: desk._stopping)
        late = again.post({"number": 3})
        assert (late.status, "stopping" in late.json["detail"]) == (503, True)
        again.go.set()
        assert in_hand.wait().status == 200
        assert read_all(kept) == b""
        kept.close()
    finally:
        assert again.stop() is ExitCode.OK
    assert [one.number for one in again.seen] == [1]
    with pytest.raises(ConnectionRefusedError):
        ask(again.port, "GET", "/orders")


def test_a_second_daemon(web: Web) -> None:
    """Who wants to listen where somebody does ends with the code of a lock, before it has run anything."""
    other = Web()
    other.launchers = [on_event(web.source, other.processor, name="orders")]
    other.start(ready=False)
    assert other.stop() is ExitCode.LOCKED
    assert web.post({"number": 1}).status == 200


def test_an_address_that_is_not_here() -> None:
    """An address that this machine does not have ends the daemon with the code of its configuration."""
    web = Web()
    web.launchers = [on_event(f"http:192.0.2.1:{free_port()}/orders?token={TOKEN}", web.processor)]
    web.start(ready=False)
    assert web.stop() is ExitCode.CONFIGURATION
