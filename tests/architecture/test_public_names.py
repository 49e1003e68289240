"""The names of the package root."""

from __future__ import annotations

import ast
import pathlib
import subprocess
import sys

import iocflow


def test_the_stub_lists_what_the_package_loads() -> None:
    """Type checkers see exactly the names that the package has, each from the module that has it."""
    stub = ast.parse(pathlib.Path(iocflow.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    named = {alias.name: node.module for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert set(named) == {*iocflow.__all__, "Client", "Durable"}
    modules = {name: __import__(module or "", fromlist=[name]) for name, module in named.items()}
    assert [name for name in named if getattr(iocflow, name) is not getattr(modules[name], name)] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A misspelt name says so, as in every other module."""
    assert not hasattr(iocflow, "SequenceProcesor")
    assert "SequenceProcessor" in dir(iocflow)


BASE = """import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("msgspec", "psycopg"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Without())
"""


def test_the_base_install_has_all_names_but_those_of_extras() -> None:
    """Without the libraries of extras, a star import and a look at all names work; the others say what to install."""
    program = """
import inspect, iocflow
from iocflow import *
assert inspect.getmembers(iocflow) and SequenceProcessor
try:
    from iocflow import Client
except ImportError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", BASE + program], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert 'pip install "iocflow[durable]"' in result.stdout
