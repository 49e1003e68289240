"""A daemon that is killed while it reads a mailbox: every mail is one run, with its effects once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.events.conftest import eventually
from tests.integration.events.daemon import Daemon
from tests.integration.events.mailbox.conftest import Mailbox, mail


@pytest.mark.parametrize("where", ["fetching", "removing", "removed"])
def test_a_daemon_that_is_killed(mailbox: Mailbox, where: str, tmp_path: Path) -> None:
    """SIGKILL in the middle of a mail, between record and removal, and behind that: no second run, none lost."""
    daemon = Daemon(tmp_path, f"{mailbox.address}&every=1s")
    mailbox.trap(where, daemon.kill)
    mailbox.put(*[mail(number, json.dumps({"n": number})) for number in range(5)])
    daemon.start()
    try:
        eventually(daemon.died)
        daemon.start()
        eventually(lambda: daemon.known() and not mailbox.left() and daemon.states() == {"completed": 5})
        daemon.stop()
    finally:
        if daemon.process is not None and daemon.process.poll() is None:
            daemon.kill()
    assert daemon.effects() == [*range(5)]
