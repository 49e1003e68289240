"""What installed distributions add to container files."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from iocflow.container.extensions import ExtensionError, Extensions


def test_registered_components(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry point's object `module:name` is the dotted name that a file may use."""
    extensions = Extensions()
    points = [EntryPoint("a", "acme.jobs:Job", "iocflow.components"), EntryPoint("b", "acme", "iocflow.components")]
    monkeypatch.setattr(extensions, "_points", points)
    assert extensions.components == {"acme.jobs.Job", "acme"}


def test_installed_components() -> None:
    """Entry points of the group `iocflow.components` and readers of sections come from what is installed."""
    extensions = Extensions()
    assert isinstance(extensions.components, frozenset)
    assert isinstance(extensions.sections["launchers"], EntryPoint)


def test_a_reader_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken extension is named, with the reason."""
    extensions = Extensions()
    point = EntryPoint("x", "no_such_module_anywhere:Reader", "iocflow.sections")
    monkeypatch.setattr(extensions, "sections", {"x": point})
    with pytest.raises(ExtensionError) as caught:
        extensions.reader("x")
    assert str(caught.value) == (
        "the reader of section `x` (no_such_module_anywhere:Reader) cannot be loaded:"
        " ModuleNotFoundError: No module named 'no_such_module_anywhere'"
    )
