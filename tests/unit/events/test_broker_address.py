"""Addresses of brokers: their parts, every mistake told, and no password in anything that is shown."""

from __future__ import annotations

import importlib.util
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from iocflow.container import check
from iocflow.events.address import Address, AddressError, password_of
from iocflow.events.broker import BrokerSource
from iocflow.events.broker_options import BrokerOptions
from iocflow.events.section import source_at
from iocflow.launch.errors import LauncherError


def options(address: str) -> BrokerOptions:
    """Return what an address says."""
    return BrokerOptions.of(Address.parse(address))


def test_all_parts() -> None:
    """Names and passwords are percent-decoded, the options read, and the name has neither user nor password."""
    found = options(
        "amqps://jo%40x:p%2Fw%3F%23@mq.example/my%2Fhost?queue=a/b&dead=grave&prefetch=3&heartbeat=5s&declare=passive"
        "&ca=ca.pem"
    )
    assert (found.user, found.password, found.vhost, found.port) == ("jo@x", "p/w?#", "my/host", 5671)
    assert (found.queue, found.dead, found.prefetch, found.passive, found.ca) == ("a/b", "grave", 3, True, "ca.pem")
    assert found.heartbeat == timedelta(seconds=5)
    assert found.name == "amqps://mq.example:5671/my%2Fhost?queue=a/b"
    assert "p/w" not in repr(found)


@pytest.mark.parametrize(
    "written", ["amqp://h?queue=q", "amqp://h/?queue=q", "amqp://u:p@h:5672//?queue=q", "amqp://h/%2F?queue=q"]
)
def test_one_queue_however_it_is_written(written: str) -> None:
    """Default port, user and the ways to write the virtual host `/` make no other source."""
    assert source_at(written).identity == "amqp://h:5672/%2F?queue=q"


def test_defaults() -> None:
    """A queue of Redis needs no more than host and queue."""
    found = options("redis://[::1]?queue=q")
    assert (found.vhost, found.dead, found.visibility) == ("", "q.dead", timedelta(hours=1))
    assert found.name == "redis://[::1]:6379/?queue=q"


WRONG = {
    "amqp:q": ["names no host and port; write amqp://USER@HOST/VHOST?queue=orders"],
    "amqp://?queue=q": ["names no host and port"],
    "amqp://h:port/?queue=q": ["names no host and port"],
    "amqp://h/v": ["names no queue; write amqp://"],
    "redis://h/0?queue=": ["names no queue; write redis://HOST:6379/0?queue=orders"],
    "amqp://h?queue=q&prefech=1": ["no option `prefech`; did you mean `prefetch`?"],
    "amqp://h?queue=q&prefetch=0": ["prefetch=0 is no number; write 1 or more"],
    "amqp://h?queue=q&heartbeat=0s": ["heartbeat=0s is out of bounds; write 1s to 10m"],
    "amqp://h?queue=q&heartbeat=5": ["heartbeat"],
    "amqp://h?queue=q&declare=pasive": ["declare=pasive is no way to declare a queue; did you mean `passive`?"],
    "amqp://h?queue=q&dead=q": ["dead=q is the queue itself"],
    "amqp://h?queue=amq.q": ["`amq.q` can be no queue", "`amq.q.dead` can be no queue"],
    f"amqp://h?queue={'q' * 253}": ["can be no queue; write another name, of 255 bytes at most"],
    "amqp://h?queue=q&queue=r": ["gives the option `queue` twice"],
    "amqp://h?queue=q&visibility=1h": ["no option `visibility`"],
    "amqp://h?queue=q&ca=x": ["no option `ca`"],
    "redis://h?queue=q&heartbeat=5s": ["no option `heartbeat`"],
    "redis://h/zero?queue=q": ["`zero` is no database of Redis; write its number"],
    "ampq://h?queue=q": ["no kind of source `ampq`; did you mean `amqp`?"],
}


@pytest.mark.parametrize("address", WRONG)
def test_mistakes(address: str) -> None:
    """Every mistake says what to write instead."""
    with pytest.raises(LauncherError) as caught:
        source_at(address)
    for reason in WRONG[address]:
        assert reason in str(caught.value)


@pytest.mark.parametrize("password", ["sesame?open", "sesame#open", "sesame/open", "sesame@open", "ses%ame"])
def test_a_password_is_never_told(password: str) -> None:
    """One that is not percent-encoded is either understood, or refused without a word of it."""
    address = f"amqp://u:{password}@h/?queue=q&prefech=1"
    with pytest.raises(LauncherError) as caught:
        source_at(address)
    assert "sesame" not in str(caught.value)
    assert "open" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "password"),
    [
        ("amqp://u:p%40w@h?queue=q", "p@w"),
        ("amqp://u:p?w@h/?queue=q", "p?w"),
        ("amqp://u@h", ""),
        ("amqp://h:5672/", ""),
        ("folder:var/in:box@x", ""),
    ],
)
def test_the_password_in_an_address(address: str, password: str) -> None:
    """It is found also where the address is wrong, so that it can be masked."""
    assert password_of(address) == password


CONTAINER = """
iocflow: 1
package: tests.integration.launch.parts
processors:
  p: {context: .Ctx, sequence: [.act]}
launchers:
  x: {processor: p, source: "memory:x"}
"""
PROFILE = (
    CONTAINER
    + """
profiles:
  live:
    launchers: {x: {processor: p, source: "amqp://u:hunter2hunter2@h?queue=q"}}
"""
)


@pytest.fixture
def without_kombu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be where kombu is not installed."""
    find = importlib.util.find_spec
    for name in [name for name in sys.modules if name.partition(".")[0] == "kombu"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "kombu" else find(name, *more))


@pytest.mark.usefixtures("without_kombu")
def test_without_the_extra(tmp_path: Path) -> None:
    """The file says what to install; with a profile that is not chosen it is no mistake."""
    with pytest.raises(AddressError, match=r'needs kombu, which is not installed; pip install "iocflow\[broker\]"'):
        source_at("amqp://h?queue=q")
    path = tmp_path / "app.yaml"
    path.write_text(PROFILE, encoding="utf-8")
    assert check(path, allow=["tests"]).mistakes == ()
    (mistake,) = check(path, allow=["tests"], profiles=["live"]).mistakes
    assert 'pip install "iocflow[broker]"' in str(mistake)


def test_the_file_s_own_password_is_masked(tmp_path: Path, iocflow: Any, root: Path) -> None:
    """A password that the file itself holds is replaced in what a command prints, also in a mistake of another part."""
    text = CONTAINER.replace("memory:x", "amqp://u:hunter2hunter2@h?queue=hunter2hunter2&prefech=hunter2hunter2")
    (tmp_path / "app.yaml").write_text(text.replace("package: tests.integration.launch.parts", "package: parts"))
    (tmp_path / "parts.py").write_text((root / "tests/integration/launch/parts.py").read_text(encoding="utf-8"))
    done = iocflow("check", "app.yaml")
    assert done.returncode == 3
    assert "did you mean `prefetch`?" in done.stdout + done.stderr
    assert "hunter2" not in done.stdout + done.stderr


def test_a_source_in_a_program() -> None:
    """Any transport of kombu can be had by an entry point to the same class: it has the common options."""
    found = BrokerSource.at(Address.parse("sqs://key:secret@region/x?queue=q&prefetch=2"))
    assert (found.name, found.options.prefetch) == ("sqs://region:0/x?queue=q", 2)
