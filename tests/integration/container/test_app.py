"""The application that a file becomes, or that is built in Python."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from iocflow.container import App, ClosedError, UnknownIdError, WrongTypeError
from iocflow.context import ProcessContext
from iocflow.errors import DuplicateNameError, IocflowError
from iocflow.run import RunEvent, RunFinished
from iocflow.sequence import SequenceProcessor
from tests.unit.container import parts

Loaded = Callable[..., App]

BODY = """
    beans:
      smtp: {class: .Smtp, args: {host: real}}
      send: {class: .Send, args: {delegate: !ref smtp}}
    processors:
      p: {context: .Order, sequence: [send]}
"""


def test_look_ups(loaded: Loaded) -> None:
    """Beans and processors are found by id, and by type where one is given: a class, or a Protocol by what it names."""
    with loaded(BODY) as app:
        assert app["smtp"] is app.get("smtp", parts.Smtp)
        sender: parts.Sender = app.get("smtp", parts.Sender)
        assert sender is app["smtp"]
        assert app.processor("p", parts.Order) is app["p"] is app.processors["p"]
        assert app.processor("p", ProcessContext) is app.processor("p")
        assert app.path == "app.yaml"
        assert app.section("launchers") is None


def test_unknown_ids(loaded: Loaded) -> None:
    """An unknown id is a KeyError of ours, which says what was probably meant."""
    with loaded(BODY) as app:
        with pytest.raises(UnknownIdError) as unknown:
            app["smpt"]
        assert str(unknown.value) == "app.yaml has no bean or processor `smpt`; did you mean `smtp`?"
        assert isinstance(unknown.value, KeyError)
        assert isinstance(unknown.value, IocflowError)
        with pytest.raises(UnknownIdError, match="known: p"):
            app.processor("sned")


def test_ids_as_of_a_mapping(loaded: Loaded, built: list[str]) -> None:
    """`in`, iteration and `len` are about ids, as in a mapping: they build nothing, also of a prototype."""
    with loaded(BODY.replace("real}}", "real}, scope: prototype}")) as app:
        before = list(built)
        assert list(app) == ["smtp", "send", "p"]
        assert len(app) == 3
        assert all(id in app for id in app)
        assert "smpt" not in app
        assert 0 not in app
        assert [] not in app
        assert built == before
    for look in (lambda: "p" in app, lambda: iter(app), lambda: len(app)):
        with pytest.raises(ClosedError):
            look()


def test_an_application_in_python_has_ids_too() -> None:
    """It has its processors by id; an application without any is as true as any other."""
    processor = SequenceProcessor([parts.Note()], context=ProcessContext, name="p")
    app = App(processor)
    assert (list(app), len(app), "p" in app, "q" in app) == (["p"], 1, True, False)
    assert App()
    assert len(App()) == 0


def test_wrong_types(loaded: Loaded) -> None:
    """A bean of another type, and a processor of another context, are refused with both types."""
    with loaded(BODY) as app:
        with pytest.raises(WrongTypeError, match="`smtp` is a `Smtp`, not a `Clock`"):
            app.get("smtp", parts.Clock)
        with pytest.raises(WrongTypeError, match="`send` is a `Send`, no processor"):
            app.processor("send")
        with pytest.raises(WrongTypeError, match="the processor `p` works on an `Order`, not on a `Parcel`"):
            app.processor("p", parts.Parcel)


def test_sections(loaded: Loaded) -> None:
    """What a section became is kept by its key; inside an override it is made anew, of what is there then."""
    body = BODY + "    launchers: {often: {processor: p, every: 1h}}\n"
    with loaded(body) as app:
        (often,) = app.section("launchers")  # type: ignore[misc]
        assert often.processor is app["p"]
        with app.override("smtp", parts.Smtp("fake")):
            (other,) = app.section("launchers")  # type: ignore[misc]
            assert other.processor is app["p"] is not often.processor
        assert app.section("launchers") == (often,)


def test_app_in_python() -> None:
    """Processors that were built in Python get the application's hooks and its loop; launchers are its section."""
    events: list[RunEvent] = []
    threads: list[str] = []

    async def wait(context: ProcessContext) -> None:
        threads.append(threading.current_thread().name)

    one = SequenceProcessor([wait], context=ProcessContext, name="one")
    two = SequenceProcessor([one], context=ProcessContext, name="two")
    wrap = parts.Interceptor()
    with App(one, two, observers=[events.append], interceptors=[wrap], launchers=["often"]) as app:
        app["two"].do_activities().raise_for_error()
        assert app.runner is not None
        assert list(app.processors) == ["one", "two"]
        assert app.section("launchers") == ("often",)
        with app.override("one", two):
            assert app["one"] is two
        assert app["one"] is one
    assert threads == ["iocflow-async"]
    assert wrap.seen == ["one/wait"]
    assert [event.processor for event in events if isinstance(event, RunFinished)] == ["two"]
    for wrong in ([one], 3):
        with pytest.raises(WrongTypeError, match="an App takes processors"):
            App(wrong)  # type: ignore[arg-type]
    with pytest.raises(DuplicateNameError, match="two processors are named 'one'"):
        App(one, one)
