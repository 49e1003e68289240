"""Building, starting and closing beans."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from iocflow.container import App, BuildError, ClosedError, CloseError, Secrets, check, load
from iocflow.wiring import ConfigurationError
from tests.unit.container import parts
from tests.unit.container.parts import BUILT

Loaded = Callable[..., App]


INTERRUPTIONS: dict[str, type[BaseException]] = {"ctrl-c": KeyboardInterrupt, "exit": SystemExit}


class Door:
    """Opens and closes, and fails when it is told to."""

    def __init__(self, name: str, needs: object = None, fails: str = "") -> None:
        if fails == "make":
            raise OSError(f"{name} is stuck")
        self.name, self.fails = name, fails

    def open(self) -> None:
        if self.fails == "open":
            raise ConnectionError(f"{self.name} does not open")
        BUILT.append(f"open {self.name}")

    async def aopen(self) -> None:
        await asyncio.sleep(0)
        BUILT.append(f"open {self.name} in {threading.current_thread().name}")

    async def aclose(self) -> None:
        self.close()

    def close(self) -> None:
        BUILT.append(f"close {self.name}")
        if self.fails == "close":
            raise OSError(f"{self.name} does not close")
        if self.fails in INTERRUPTIONS:
            raise INTERRUPTIONS[self.fails](self.name)


@pytest.fixture(autouse=True)
def doors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let container files name `Door` beside the other parts."""
    monkeypatch.setattr(parts, "Door", Door, raising=False)
    monkeypatch.setattr(Door, "__module__", parts.__name__)


def test_order(loaded: Loaded, built: list[str]) -> None:
    """What a bean needs is opened before it and closed after it, `depends-on` included, each after all was set."""
    app = loaded("""
        beans:
          a: {class: .Door, args: {name: a, needs: !ref b}, init: open, close: close}
          b: {class: .Door, args: {name: b}, depends-on: c, init: open, close: close}
          c: {class: .Door, args: {name: c}, set: {name: see}, init: open, close: close}
    """)
    assert built == ["open see", "open b", "open a"]
    with app:
        pass
    assert built[3:] == ["close a", "close b", "close see"]
    app.close()
    assert len(built) == 6


def test_inner_beans_are_closed(loaded: Loaded, built: list[str]) -> None:
    """An inner bean lives as long as the singleton that holds it."""
    door = "{class: .Door, args: {name: in}, init: open, close: close}"
    with loaded(f"beans: {{a: {{class: .Holder, args: {{other: [!new {door}]}}}}}}"):
        assert built == ["open in"]
    assert built == ["open in", "close in"]


def test_async_init(loaded: Loaded, built: list[str]) -> None:
    """An async `init` is awaited on the application's loop."""
    with loaded("beans: {a: {class: .Door, args: {name: a}, init: aopen}}"):
        assert built == ["open a in iocflow-async"]


def test_every_bean_is_closed(loaded: Loaded, built: list[str]) -> None:
    """A bean that cannot be closed keeps no other from being closed; all errors are told, each with its bean."""
    app = loaded("""
        beans:
          a: {class: .Door, args: {name: a}, close: close}
          b: {class: .Door, args: {name: b, fails: close}, close: close}
          c: {class: .Door, args: {name: c, fails: close}, close: close}
    """)
    with pytest.raises(CloseError) as failed:
        app.close()
    assert built == ["close c", "close b", "close a"]
    assert [(str(error), error.__notes__) for error in failed.value.exceptions] == [
        ("c does not close", ["while bean `c` was closed"]),
        ("b does not close", ["while bean `b` was closed"]),
    ]


@pytest.mark.parametrize("kind", INTERRUPTIONS)
@pytest.mark.parametrize("close", ["close", "aclose"])
def test_an_interruption_keeps_no_bean_from_being_closed(
    loaded: Loaded, built: list[str], kind: str, close: str
) -> None:
    """Ctrl-C or an exit while a bean is closed comes out when all are, with what else was raised noted on it."""
    app = loaded(f"""
        beans:
          a: {{class: .Door, args: {{name: a}}, close: close}}
          b: {{class: .Door, args: {{name: b, fails: {kind}}}, close: {close}}}
          c: {{class: .Door, args: {{name: c, fails: close}}, close: close}}
          d: {{class: .Door, args: {{name: d, fails: {kind}}}, close: {close}}}
          e: {{class: .Door, args: {{name: e}}, close: close}}
    """)
    with pytest.raises(INTERRUPTIONS[kind]) as interrupted, app:
        pass
    assert built == ["close e", "close d", "close c", "close b", "close a"]
    assert interrupted.value.args == ("d",)
    assert interrupted.value.__notes__ == ["while bean `c` was closed: OSError: c does not close"]
    app.close()
    assert len(built) == 5


def test_closing_does_not_hide_an_error(loaded: Loaded) -> None:
    """An error inside the `with` comes out as it is; what could not be closed is noted on it."""
    app = loaded("beans: {a: {class: .Door, args: {name: a, fails: close}, close: close}}")
    with pytest.raises(ZeroDivisionError) as raised, app:
        raise ZeroDivisionError
    assert raised.value.__notes__ == ["while bean `a` was closed: OSError: a does not close"]


@pytest.mark.parametrize(
    ("fails", "said"),
    [
        ("make", "OSError: c is stuck"),
        ("open", "ConnectionError: c does not open"),
    ],
)
def test_failed_build(loaded: Loaded, built: list[str], fails: str, said: str) -> None:
    """When a bean cannot be built, the error names it with its place, and what was built is closed."""
    with pytest.raises(BuildError) as failed:
        loaded(f"""
            beans:
              a: {{class: .Door, args: {{name: a}}, init: open, close: close}}
              b: {{class: .Door, args: {{name: b, fails: close}}, close: close}}
              c: {{class: .Door, args: {{name: c, fails: {fails}}}, init: open, close: close}}
              d: {{class: .Door, args: {{name: d}}, init: open}}
        """)
    closing = "and while bean `b` was closed: OSError: b does not close"
    assert str(failed.value).startswith(f"app.yaml:6:3: `c` cannot be built: {said}; {closing}\n")
    assert isinstance(failed.value, ConfigurationError)
    assert isinstance(failed.value.__cause__, OSError)
    assert built == ["open a", "close b", "close a"]


def test_failed_inner_bean_is_named(loaded: Loaded) -> None:
    """When an inner bean cannot be built, the error names the bean that holds it, and the inner one's place."""
    with pytest.raises(
        BuildError, match=r"`a` cannot be built: OSError: in is stuck; while `Door` \(app.yaml:3:43\) was"
    ):
        loaded("beans: {a: {class: .Holder, args: {other: !new {class: .Door, args: {name: in, fails: make}}}}}")


def test_secrets_are_masked(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of a constructor that quotes a secret is told with the secret masked."""
    monkeypatch.setenv("TOKEN", "s3cret-token")
    with pytest.raises(BuildError, match=r"OSError: \*\*\* is stuck"):
        loaded("beans: {a: {class: .Door, args: {name: '${secret:token}', fails: make}}}")


def test_failed_build_takes_the_masking_off(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    """When building fails, iocflow's loggers are as they were before."""
    monkeypatch.setenv("TOKEN", "hunter22")
    before = list(logging.getLogger("iocflow").filters)
    with pytest.raises(BuildError):
        loaded("beans: {a: {class: .Door, args: {name: '${secret:token}', fails: make}}}")
    assert logging.getLogger("iocflow").filters == before


def test_closed(loaded: Loaded) -> None:
    """A closed application gives nothing more."""
    app = loaded("beans: {a: {class: .Door, args: {name: a}}}")
    app.close()
    with pytest.raises(ClosedError, match=r"the application of app.yaml is closed"):
        app["a"]
    with pytest.raises(ClosedError), app:
        pass


def test_one_singleton_for_all_threads(loaded: Loaded, built: list[str]) -> None:
    """Eight threads that look up at once get the one singleton, built before any of them asked."""
    with loaded("beans: {a: {class: .Smtp, args: {host: h}}, p: {class: .Clock, scope: prototype}}") as app:
        barrier = threading.Barrier(8)

        def look_up(_: int) -> tuple[object, object]:
            barrier.wait()
            return app["a"], app["p"]

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(look_up, range(8)))
        assert {id(one) for one, _ in found} == {id(app["a"])}
        assert len({id(one) for _, one in found}) == 8
    assert built.count("Smtp(h)") == 1


def test_unused_after_override_is_not_built(loaded: Loaded, built: list[str]) -> None:
    """A bean that an override replaces is never built, nor what only that one would have needed."""
    body = """
        beans:
          shared: {class: .Door, args: {name: shared}, init: open}
          private: {class: .Door, args: {name: private}, init: open, close: close}
          smtp: {factory: .make_smtp, depends-on: [private, shared]}
          clock: {class: .Holder, args: {other: !ref shared}}
          send: {class: .Send, args: {delegate: !ref smtp}}
    """
    fake = parts.Smtp("fake")
    built.clear()
    with loaded(body, override={"smtp": fake}) as app:
        assert app["send"].delegate is fake
        assert app["smtp"] is fake
        assert built == ["open shared", "Send()"]
        assert app["private"].name == "private"
    assert built == ["open shared", "Send()", "open private", "close private"]


def test_secrets_of_check_are_masked(write: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a mistake nor the line that is shown with it tells the value of a secret, whoever quotes it."""
    monkeypatch.setenv("TOKEN", "hunter22")
    found = check(write("beans: {a: {class: .Smtp, args: {host: '${secret:token}', hunter22: 1}}}"))
    assert [one.what for one in found.mistakes] == ["`Smtp` takes no `***`"]
    assert "hunter22" not in found.rendered()
    assert "***: 1" in found.rendered()


def test_logs_of_building_can_be_masked(
    write: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A caller's `secrets` know all of the file before the first bean is built."""
    monkeypatch.setenv("TOKEN", "hunter22")
    secrets = Secrets()
    caplog.handler.addFilter(secrets.filter())
    with load(write("beans: {a: {class: .Talker, args: {token: '${secret:token}'}}}"), secrets=secrets) as app:
        assert app.secrets is secrets
    assert caplog.messages == ["connected with ***"]
