"""The names of the package root."""

from __future__ import annotations

import ast
import pathlib

import iocflow


def test_the_stub_lists_what_the_package_loads() -> None:
    """Type checkers see exactly the names that the package has, each from the module that has it."""
    stub = ast.parse(pathlib.Path(iocflow.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    named = {alias.name: node.module for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert set(named) == set(iocflow.__all__)
    modules = {name: __import__(module or "", fromlist=[name]) for name, module in named.items()}
    assert [name for name in named if getattr(iocflow, name) is not getattr(modules[name], name)] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A misspelt name says so, as in every other module."""
    assert not hasattr(iocflow, "SequenceProcesor")
    assert "SequenceProcessor" in dir(iocflow)
