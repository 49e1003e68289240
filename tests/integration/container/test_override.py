"""Replacing beans for a while."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import MagicMock

import pytest

from iocflow.container import App, UnknownIdError, WrongTypeError, check, load
from iocflow.wiring import ConfigurationError
from tests.unit.container import parts

Loaded = Callable[..., App]

BODY = """
    beans:
      smtp: {class: .Smtp, args: {host: real}, init: connect, close: disconnect}
      send: {class: .Send, args: {delegate: !ref smtp}}
      holder: {class: .Smtp, args: {host: held}, depends-on: send, init: connect, close: disconnect}
      other: {class: .Clock}
      each: {class: .Holder, scope: prototype, args: {other: !ref smtp}}
      asks: {class: .Hub, args: {make: !provider smtp}}
    processors:
      p: {context: .Order, sequence: [send]}
      outer: {context: .Order, sequence: [p]}
"""


class Fake:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def send(self, text: str) -> None:
        self.sent.append(text)


def test_dependants_are_reset_both_ways(loaded: Loaded, built: list[str]) -> None:
    """Inside, all that needs the bean is built anew with the fake; afterwards the former objects are there again."""
    with loaded(BODY) as app:
        real, send, other, processor = app["smtp"], app["send"], app["other"], app.processor("outer")
        fake = Fake()
        with app.override("smtp", fake):
            assert app["smtp"] is fake
            assert app["send"].delegate is fake
            assert app["each"].other is fake
            assert app["asks"].make() is fake
            assert app["other"] is other
            app.processor("outer").do_activities().raise_for_error()
            assert fake.sent == ["send"]
            assert real.sent == []
        assert app["smtp"] is real
        assert app["send"] is send
        assert app["each"].other is real
        assert app.processor("outer") is processor
        processor.do_activities().raise_for_error()
        assert real.sent == ["send"]


def test_life_cycle_of_an_override(loaded: Loaded, built: list[str]) -> None:
    """What is built for the time of an override is closed at its end; what stood before stays open throughout."""
    with loaded(BODY) as app:
        built.clear()
        with app.override("smtp", Fake()):
            assert built == ["Send()", "Smtp(held)", "connect held"]
        assert built[3:] == ["disconnect held"]
    assert built[4:] == ["disconnect held", "disconnect real"]


def test_overrides_nest(loaded: Loaded) -> None:
    """An override inside another keeps the outer one, also when the outer's bean needs the inner's."""
    with loaded(BODY) as app:
        first, second, send = Fake(), Fake(), parts.Send(Fake())
        with app.override("smtp", first):
            with app.override("smtp", second):
                assert app["send"].delegate is second
            assert app["send"].delegate is first
        with app.override("send", send), app.override("smtp", first):
            assert app["send"] is send
            assert app["each"].other is first


def test_override_of_a_processor(loaded: Loaded) -> None:
    """A processor can be replaced by an activity, which is what it is."""
    with loaded(BODY) as app, app.override("p", parts.Note()):
        assert [step.activity for step in app.processor("outer").do_activities().steps] == ["p"]
        with pytest.raises(WrongTypeError, match=r"`p` is a `Note`, no processor"):
            app.processor("p")


def test_failing_dependant(loaded: Loaded) -> None:
    """When a dependant cannot be built with the replacement, the error comes out and all is as before."""
    body = """
        beans:
          smtp: {class: .Smtp, args: {host: real}}
          send: {class: .Send, args: {delegate: !ref smtp}}
          picky: {class: .Picky, args: {sender: !ref smtp}}
    """
    with loaded(body) as app:
        picky, smtp = app["picky"], app["smtp"]
        with pytest.raises(TypeError, match="not a Fake") as raised, app.override("smtp", Fake()):
            pass
        assert raised.value.__notes__ == ["while bean `picky` (app.yaml:6:3) was made"]
        assert (app["picky"], app["smtp"]) == (picky, smtp)


def test_mock_with_a_spec(loaded: Loaded) -> None:
    """An object that claims a class, as a mock with a spec does, is one."""
    with loaded(BODY, override={"smtp": MagicMock(spec=parts.Smtp)}) as app:
        app.processor("p").do_activities().raise_for_error()
        app["smtp"].send.assert_called_once_with("send")


def test_refused_overrides(loaded: Loaded) -> None:
    """An override must be of a known id."""
    message = r"app.yaml has no bean or processor `smpt`; did you mean `smtp`\?"
    with loaded(BODY) as app, pytest.raises(UnknownIdError, match=message):
        app.override("smpt", Fake()).__enter__()


def test_refused_overrides_at_load(loaded: Loaded) -> None:
    """The same is checked at load, with the place of the use."""
    with loaded(BODY):
        pass
    found = check("app.yaml", override={"smpt": Fake(), "smtp": parts.Clock(), "send": parts.Duck()})
    assert [str(one) for one in found.mistakes if not one.warning] == [
        "app.yaml:1:1: the override `smpt` is of no bean or processor of the file; did you mean `smtp`?",
        "app.yaml:5:41: `delegate` of bean `send` wants `Sender`, and the override of `smtp` is a `Clock` without"
        " `send`; refer to a bean that fits",
        "app.yaml:9:36: the provider `make` of bean `asks` wants `Sender`, and the override of `smtp` is a `Clock`"
        " without `send`; refer to a bean that fits",
        "app.yaml:11:35: step 1 of processor `p` is `send` (`Duck`), which is no activity: it does not subclass"
        " `iocflow.Activity`; let it subclass `iocflow.Activity`",
    ]


def test_context_beans_are_not_overridden(loaded: Loaded) -> None:
    """One object cannot be the context of every run."""
    body = """
        beans:
          ctx: {class: .Order, scope: prototype}
          note: {class: .Note}
        processors: {p: {context: ctx, sequence: [note]}}
    """
    with loaded(body) as app:
        assert app.processor("p").context_type is parts.Order
    with pytest.raises(
        ConfigurationError, match="which is overridden by one object; every run needs a context of its own"
    ):
        load("app.yaml", override={"ctx": parts.Order()})
