"""The sections `launchers:` and `daemon:` of real files: what they build, and what is refused where."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest
import time_machine

from iocflow.container import check, load
from iocflow.events import EventLauncher, FolderSource, MemorySource
from iocflow.launch import DaemonSettings
from iocflow.launch.section import DaemonReader, LaunchersReader
from iocflow.schedule import PollingLauncher, next_firings

HEAD = """\
iocflow: 1
package: tests.integration.launch.parts
values: {seconds: 5}
beans: {act: {call: .act}, finder: {class: .Finder}}
processors:
  p: {context: .Ctx, sequence: [act]}
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that writes a container file which ends with the given text."""

    def write(text: str) -> Path:
        path = tmp_path / "app.yaml"
        path.write_text(HEAD + text, encoding="utf-8")
        return path

    return write


def test_every_kind_is_built(write: Callable[[str], Path]) -> None:
    """Each kind of launcher comes out with what the file says, in the order of the file."""
    path = write(
        """\
launchers:
  a: {processor: p, every: 60s, jitter: 5s, poll: finder}
  b: {processor: p, source: "folder:var/inbox?interval=100ms&limit=2kB"}
  c: {processor: p, cron: "30 6 * * sun", timezone: Europe/Berlin}
  d: {processor: p, at: 2027-01-01T06:00, timezone: Europe/Berlin}
  e: {processor: p, calendar: {days: 1, hour: 6}, overlap: queue-one, late: skip}
  f: {processor: p, source: "memory:orders"}
"""
    )
    now = datetime(2026, 6, 1, tzinfo=UTC)
    with load(path, allow=["tests"]) as app:
        launchers = app.section("launchers")
        assert isinstance(launchers, tuple)
        assert [(one.name, one.kind, one.trigger) for one in launchers] == [
            ("a", "every", "every 1m"),
            ("b", "source", "folder:var/inbox"),
            ("c", "cron", "cron 30 6 * * sun (Europe/Berlin)"),
            ("d", "at", "at 2027-01-01 06:00:00+01:00"),
            ("e", "calendar", "calendar every 1 d at 06:00:00 (UTC)"),
            ("f", "source", "memory:orders"),
        ]
        assert all(one.processor is app["p"] for one in launchers)
        assert [type(one) for one in launchers].count(PollingLauncher) == 4
        folder = launchers[1].source
        assert isinstance(launchers[1], EventLauncher)
        assert isinstance(folder, FolderSource)
        assert (folder.options.interval, folder.options.limit) == (timedelta(milliseconds=100), 2000)
        assert MemorySource.of(launchers, "orders") is launchers[5].source
        assert [str(one) for one in next_firings(launchers[2], 1, now)] == ["2026-06-07 06:30:00+02:00"]
        with pytest.raises(LookupError):
            MemorySource.of(launchers, "bills")


def test_daemon_settings(write: Callable[[str], Path]) -> None:
    """The section `daemon:` gives settings, those it does not name at their defaults."""
    path = write("daemon: {pool: 2, grace: 1500ms, heartbeat: 1s}")
    with load(path, allow=["tests"]) as app:
        assert app.section("daemon") == DaemonSettings(2, timedelta(seconds=1.5), timedelta(seconds=1))


@pytest.mark.parametrize(
    ("host", "ip"),
    [("", "127.0.0.1"), (", host: localhost", "127.0.0.1"), (", host: 0.0.0.0", "0.0.0.0"), (', host: "::"', "::")],
)
def test_the_daemons_port(write: Callable[[str], Path], host: str, ip: str) -> None:
    """The port is that of this machine's own address, unless another one is given."""
    with load(write(f"daemon: {{port: 9100{host}}}"), allow=["tests"]) as app:
        assert app.section("daemon") == DaemonSettings(port=9100, host=ip)


def test_the_port_without_its_libraries(write: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where what the port needs is not installed, the file is refused at that place, with the extra that brings it."""

    monkeypatch.delitem(sys.modules, "iocflow.launch.operations", raising=False)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    (mistake,) = check(write("daemon: {port: 9100}"), allow=["tests"]).mistakes
    assert "metrics need prometheus_client, which is not installed" in str(mistake)
    assert 'pip install "iocflow[metrics]"' in str(mistake)


@pytest.mark.parametrize(
    ("launcher", "mistakes"),
    [
        ("{processor: p, every: 0s}", ["every of launcher x: every 0s is no interval to poll at; write 100ms to 366d"]),
        ("{processor: p, every: 5}", ["every of launcher x has no unit; write 5s"]),
        ("{processor: p, every: '5'}", ["every of launcher x has no unit; write 5s"]),
        ("{processor: p, every: 0.5, jitter: 1}", ["has no unit; write 0.5s", "jitter of launcher x has no unit"]),
        ("{processor: p, every: -5}", ["every of launcher x has no unit"]),
        ("{processor: p, every: '${seconds}'}", ["every of launcher x has no unit; write 500ms, 30s, 5m, 2h or 1d"]),
        ("{processor: p, every: -5s}", ["every of launcher x is `-5s`, which is no duration"]),
        ("{processor: p, every: 500d}", ["every of launcher x: every 500d is no interval"]),
        ("{processor: p, every: soon}", ["every of launcher x is `soon`, which is no duration"]),
        ("{processor: q, every: 0s}", ["there is no processor `q`; known: p", "every 0s is no interval"]),
        ("{processor: act, every: 5s}", ["`act` is a bean, no processor"]),
        ("{every: 5s}", ["launcher `x` has no processor"]),
        ('{processor: p, every: 5s, cron: "* * * * *"}', ["launcher `x` has both `every` and `cron`"]),
        ("{processor: p, evry: 5s}", ["nothing says when launcher `x` starts a run; did you mean `every`?"]),
        ("{processor: p}", ["give it one of: at, calendar, cron, every, source"]),
        ("[processor, p]", ["launcher `x` is no mapping; write `x: {processor: ID, every: 60s}`"]),
        (
            '{processor: p, cron: "* * * *", timezone: Europe/Berln, dst: never}',
            [
                "`* * * *` has 4 fields",
                "no time zone `Europe/Berln`; did you mean `Europe/Berlin`?",
                "dst of launcher x",
            ],
        ),
        ('{processor: p, cron: "0 0 30 2 *"}', ["never fires"]),
        ("{processor: p, every: 5s, timezone: UTC}", ["launcher x has no key `timezone`"]),
        ('{processor: p, source: "folder:"}', ["source of launcher x: `folder:` is no address"]),
        ('{processor: p, source: "foldr:x"}', ["no kind of source `foldr`; did you mean `folder`?"]),
        ('{processor: p, source: "folder:x?intervall=5s"}', ["no option `intervall`; did you mean `interval`?"]),
        ('{processor: p, source: "folder:x?interval=0s"}', ["interval=0s is out of bounds"]),
        ('{processor: p, source: "folder:x?limit=much"}', ["limit=much is no size; write 500kB, 10MB or 1GB"]),
        ('{processor: p, source: "folder:x?limit=1MB&limit=2MB"}', ["gives the option `limit` twice"]),
        (
            '{processor: p, source: "folder://h/x?interval=1&patience=x&limt=5MB&limit=0MB&interval=9d"}',
            [
                "gives the option `interval` twice",
                "interval is '1', which is no duration",
                "patience is 'x', which is no duration",
                "no option `limt`; did you mean `limit`?",
                "limit=0MB is no size",
                "names a host",
            ],
        ),
        (f'{{processor: p, source: "memory:x?limit={"9" * 5000}"}}', ["9 is no number; write 1 or more"]),
        (f'{{processor: p, source: "folder:x?limit={"9" * 5000}MB"}}', ["MB is no size; write 500kB"]),
        (f'{{processor: p, source: "folder:x?interval={"9" * 5000}s"}}', ["longer than any clock runs"]),
        (f'{{processor: p, cron: "{"9" * 5000} * * * *"}}', ["is no minute"]),
        (f"{{processor: p, every: {'9' * 5000}s, jitter: {'9' * 5000}s}}", ["every of launcher x", "jitter of"]),
        ('{processor: p, source: "memory:x?limit=0&limt=1"}', ["limit=0 is no number", "no option `limt`"]),
        ('{processor: p, source: "folder://var/inbox"}', ["names a host; write folder:var/inbox"]),
        ('{processor: p, source: "memory:x?limit=0"}', ["limit=0 is no number"]),
        ('{processor: p, source: "memory:x", every: 5s}', ["both `source` and `every`"]),
        ("{processor: p, calendar: {day: 1}}", ["the calendar of launcher x has no key `day`; did you mean `days`?"]),
        ("{processor: p, calendar: {hour: 6}}", ["a calendar needs a step"]),
        (
            "{processor: p, calendar: {days: 1, hour: 25}}",
            ["hour of the calendar of launcher x is out of bounds; write 0 to 23"],
        ),
        (
            "{processor: p, calendar: {days: 1, minute: 60, secnd: 4, hour: six, start: x}, timezone: X, jitter: 9d}",
            [
                "minute of the calendar of launcher x is out of bounds; write 0 to 59",
                "the calendar of launcher x has no key `secnd`; did you mean `second`?",
                "hour of the calendar of launcher x is `six`",
                "start of launcher x is `x`",
                "no time zone `X`",
                "jitter 9d is out of bounds; write less than 1d",
            ],
        ),
        (
            "{processor: p, calendar: {hour: 25, second: -1}}",
            ["a calendar needs a step", "write 0 to 23", "second of the calendar of launcher x is out of bounds"],
        ),
        (
            "{processor: p, calendar: {months: 121, weeks: x}, dst: never}",
            [
                "months of the calendar of launcher x is out of bounds; write 0 to 120",
                "weeks of the",
                "dst of launcher x",
            ],
        ),
        (
            "{processor: p, calendar: 5, timezone: X}",
            ["no time zone `X`", "the calendar of launcher x is no mapping; write `calendar: {days: 1, hour: 6}`"],
        ),
        ("{processor: p, at: tomorrow}", ["at of launcher x is `tomorrow`"]),
        ("{processor: p, every: 5s, jitter: 5s}", ["jitter 5s is out of bounds; write less than 5s"]),
        (
            "{processor: p, every: 5s, overlap: allow, late: maybe}",
            ["overlap of launcher x is `allow`", "late of launcher x is `maybe`"],
        ),
        ("{processor: p, every: 5s, poll: act}", ["poll of launcher x wants `Poller`"]),
        ("{processor: p, every: 5s, poll: findr}", ["did you mean `finder`?"]),
        ("{processor: p, every: '${env:NO_SUCH_VARIABLE}'}", ["NO_SUCH_VARIABLE"]),
    ],
)
def test_a_launcher_is_refused(write: Callable[[str], Path], launcher: str, mistakes: list[str]) -> None:
    """Each mistake of a launcher is found, with its place in the line and what to write; nothing else is."""
    found = check(write(f"launchers:\n  x: {launcher}\n"), allow=["tests"]).mistakes
    errors = sorted((one for one in found if not one.warning), key=lambda one: one.place)
    assert len(errors) == len(mistakes), errors
    for wanted in mistakes:
        assert any(wanted in str(one) for one in errors), errors
    assert {one.place.line for one in errors} == {8}


@pytest.mark.parametrize(
    "other",
    ["folder:in", "folder:in/", "folder:./in?interval=1s", "folder:x/../in", "folder:{here}/in", "folder:link"],
)
def test_one_folder_has_one_launcher(
    write: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """Two launchers of one folder, however it is spelled, would take each other's events; both places are shown."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("in")
    other = other.format(here=tmp_path)
    text = f'launchers:\n  x: {{processor: p, source: "folder:in"}}\n  y: {{processor: p, source: "{other}"}}\n'
    (mistake,) = (one for one in check(write(text), allow=["tests"]).mistakes if not one.warning)
    assert f"{other} has two launchers" in mistake.what
    assert (mistake.place.line, mistake.related[0][0].line) == (9, 8)


def test_two_folders_have_two_launchers(write: Callable[[str], Path]) -> None:
    """A folder inside of another one is another one, and so is a queue in memory of the same name."""
    sources = ("folder:in", "folder:in/urgent", "memory:in", "memory:out")
    lines = [f'  l{at}: {{processor: p, source: "{one}"}}\n' for at, one in enumerate(sources)]
    assert not check(write("launchers:\n" + "".join(lines)), allow=["tests"]).failed


@pytest.mark.parametrize(
    ("launcher", "passed"),
    [
        ("at: 2026-03-02T11:59", True),
        ("at: 2026-03-02T12:59, timezone: Europe/Berlin", True),
        ("at: 2026-03-02T12:01", False),
        ("at: 2026-03-02T13:01, timezone: Europe/Berlin", False),
        ("at: '2026-03-02T07:01-05:00'", False),
        ("calendar: {days: 1}", False),
    ],
)
def test_a_moment_that_has_passed(write: Callable[[str], Path], launcher: str, passed: bool) -> None:
    """What can never fire any more is no mistake, since it was right once, but check warns about it."""
    with time_machine.travel(datetime(2026, 3, 2, 12, tzinfo=UTC)):
        checked = check(write(f"launchers:\n  x: {{processor: p, {launcher}}}\n"), allow=["tests"])
    warnings = [(one.place.line, one.what) for one in checked.mistakes if one.place.line > 6]
    assert not checked.failed
    assert warnings == ([(8, "at of launcher x has passed, and will not be made up for")] if passed else [])


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ('launchers:\n  "bad name!": {processor: p, every: 5s}', "`bad name!` cannot be the id of a launcher"),
        ("launchers: [p]", "`launchers` is no mapping; write `launchers: {NAME: {processor: ID, every: 60s}}`"),
        ("daemon: 5", "`daemon` is no mapping; write `daemon: {pool: 8, grace: 25s}`"),
        ("daemon: {pool: 0}", "pool of the daemon is out of bounds; write 1 to 1000"),
        ("daemon: {pool: many}", "pool of the daemon"),
        ("daemon: {grace: 3d}", "grace of the daemon is out of bounds; write 0s to 1d"),
        ("daemon: {grace: 25}", "grace of the daemon has no unit; write 25s"),
        ("daemon: {overdue: 10}", "overdue of the daemon has no unit; write 10s"),
        ("daemon: {heartbeat: 31s}", "heartbeat of the daemon is out of bounds; write 50ms to 30s"),
        ("daemon: {port: 0}", "port of the daemon is out of bounds; write 1 to 65535"),
        ("daemon: {port: 65536}", "port of the daemon is out of bounds; write 1 to 65535"),
        ("daemon: {host: 0.0.0.0}", "there is no `port`; write `port: 9100` beside it, or remove it"),
        (
            "daemon: {port: 9100, host: example.com}",
            "`example.com`, which is no IP address; write 127.0.0.1",
        ),
        ("daemon: {overdu: 5s}", "the daemon has no key `overdu`; did you mean `overdue`?"),
    ],
)
def test_a_section_is_refused(write: Callable[[str], Path], section: str, says: str) -> None:
    """What is wrong with the sections themselves is found too."""
    (mistake,) = (one for one in check(write(section), allow=["tests"]).mistakes if not one.warning)
    assert says in str(mistake)


def test_a_refusal_does_not_tell_what_a_placeholder_hides(
    write: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message of a wrong value prints the placeholder, as the file does."""
    monkeypatch.setenv("WHERE", "hunter2")
    path = write("launchers:\n  x: {processor: p, source: '${env:WHERE}'}\n")
    text = "\n".join(str(one) for one in check(path, allow=["tests"]).mistakes)
    assert "hunter2" not in text
    assert "${env:WHERE}" in text


@pytest.mark.parametrize(
    ("launcher", "fits"),
    [
        ({"processor": "p", "every": "60s", "jitter": "5s"}, True),
        ({"processor": "p", "source": "folder:var/inbox"}, True),
        ({"processor": "p", "calendar": {"days": 1, "hour": 6}, "timezone": "UTC"}, True),
        ({"processor": "p", "at": "2027-01-01T06:00"}, True),
        ({"processor": "p", "every": 60}, False),
        ({"processor": "p", "every": "${poll.every}", "late": "${late}"}, True),
        ({"processor": "p", "source": "${inbox}"}, True),
        ({"processor": "p", "source": "inbox"}, False),
        ({"processor": "p", "every": "60"}, False),
        ({"processor": "p", "every": "60s", "cron": "* * * * *"}, False),
        ({"processor": "p", "every": "60s", "timezone": "UTC"}, False),
        ({"processor": "p"}, False),
        ({"every": "60s"}, False),
    ],
)
def test_schema_for_editors(launcher: dict[str, object], fits: bool) -> None:
    """The JSON Schema takes what the reader takes."""
    validator = jsonschema.Draft202012Validator(LaunchersReader().schema())
    assert validator.is_valid({"x": launcher}) is fits


def test_schema_of_the_daemon() -> None:
    """The JSON Schema of the daemon's section knows its keys."""
    validator = jsonschema.Draft202012Validator(DaemonReader().schema())
    assert not validator.is_valid({"grace": 25})
    assert validator.is_valid({"pool": 8, "grace": "25s", "heartbeat": "5s", "overdue": "10m"})
    assert not validator.is_valid({"pool": 0})
    assert not validator.is_valid({"workers": 8})
