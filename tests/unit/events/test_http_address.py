"""Addresses of `http:` sources: where they listen, what they let in, and that nothing tells of a token."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from iocflow.container import load
from iocflow.container.failures import ConfigurationError
from iocflow.events.address import AddressError
from iocflow.events.http import HttpSource
from iocflow.events.http_address import HttpOptions
from iocflow.events.section import source_at
from iocflow.launch.errors import LauncherError
from iocflow.wiring import extras

TOKEN = "Zm9vYmFyYmF6+/%41=="


def source(text: str) -> HttpSource:
    """Return the source at an address."""
    found = source_at(text)
    assert isinstance(found, HttpSource)
    return found


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("http:8080/orders", "http:127.0.0.1:8080/orders"),
        ("http://127.0.0.1:8080/orders", "http:127.0.0.1:8080/orders"),
        ("http:localhost:8080/v1/orders", "http:127.0.0.1:8080/v1/orders"),
        ("http:127.0.0.2:1/a-b_c.d~e", "http:127.0.0.2:1/a-b_c.d~e"),
        ("http:[::1]:8080/orders", "http:[::1]:8080/orders"),
        ("http:[0:0::1]:8080/orders", "http:[::1]:8080/orders"),
    ],
)
def test_where_it_listens(text: str, name: str) -> None:
    """Without an address it is this machine only; two ways to write a place are the same place."""
    assert (source(text).name, source(text).identity) == (name, name)


def test_options() -> None:
    """Each option has the value that is written, or its default."""
    assert source("http:8080/orders").options == HttpOptions()
    found = source("http:8080/orders?token=0123456789abcdef&limit=2MB&timeout=5s&wait=100ms&waiting=7").options
    assert found == HttpOptions("0123456789abcdef", 2_000_000, timedelta(seconds=5), timedelta(seconds=0.1), 7)
    assert source("http:8080/orders?token=").options == HttpOptions()
    assert source("http:0.0.0.0:80/a?token=abcdefgh+/=.~_-1").options.token == "abcdefgh+/=.~_-1"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("http:8080", "write http:8080/orders"),
        ("http:8080/", "write http:8080/orders"),
        ("http:8080/orders/", "write http:8080/orders"),
        ("http:8080/a b", "write http:8080/orders"),
        ("http:/orders", "write http:8080/orders"),
        ("http:0/orders", "write 1 to 65535"),
        ("http:65536/orders", "write 1 to 65535"),
        ("http:example.com:80/orders", "`example.com` is no IP address"),
        ("http:0.0.0.0:80/orders", r"add \?token="),
        ("http:[::]:80/orders", "open to other machines"),
        ("http:8080/orders?limt=1", "did you mean `limit`"),
        ("http:8080/orders?wait=2d", "write 100ms to 1h"),
        ("http:8080/orders?wait=0s", "write 100ms to 1h"),
        ("http:8080/orders?waiting=0", "write 1 or more"),
        ("http:0.0.0.0:80/orders?token=", "open to other machines"),
        ("http:8080/orders?token=short", "16 characters or more"),
    ],
)
def test_wrong_addresses(text: str, why: str) -> None:
    """A wrong address is refused with what to write instead, before anything is opened."""
    with pytest.raises(LauncherError, match=why):
        source_at(text)


@pytest.mark.parametrize("token", ["correct horse battery staple", "correct&horse&battery=staple", "correct%20horse!"])
def test_a_wrong_token_is_not_told(token: str) -> None:
    """What is wrong with a token is told without a piece of it."""
    with pytest.raises(AddressError) as caught:
        source_at(f"http:8080/orders?token={token}")
    assert not any(word in str(caught.value) for word in ("correct", "horse", "battery", "staple"))


CONTAINER = """
iocflow: 1
package: tests.integration.launch.parts
processors:
  p: {{context: .Ctx, sequence: [.act]}}
launchers:
  a: {{processor: p, source: "{first}"}}
  b: {{processor: p, source: "{second}"}}
"""


def wired(folder: Path, first: str, second: str = "memory:x") -> Any:
    """Load a container file with two launchers."""
    file = folder / "app.yaml"
    file.write_text(CONTAINER.format(first=first, second=second), encoding="utf-8")
    return load(file)


def test_a_token_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token from the environment, or the file itself, is masked from then on."""
    monkeypatch.setenv("ORDERS_TOKEN", "from-the-environment")
    with wired(tmp_path, "http:8080/a?token=${secret:ORDERS_TOKEN}", "http:8080/b?token=from-the-file-itself") as app:
        assert [one.source.options.token for one in app.section("launchers")] == [
            "from-the-environment",
            "from-the-file-itself",
        ]
        assert app.secrets.mask("from-the-environment from-the-file-itself") == "*** ***"


def test_one_place_twice(tmp_path: Path) -> None:
    """Two launchers at one place are a mistake of the file, however it is spelled."""
    with pytest.raises(ConfigurationError, match="has two launchers"):
        wired(tmp_path, "http:8080/a", "http:localhost:8080/a")


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where h11 is not installed, an address is refused with the extra that brings it."""

    def missing(name: str) -> Any:
        raise ModuleNotFoundError("No module named 'h11'", name="h11")

    monkeypatch.setattr(extras.importlib, "import_module", missing)
    with pytest.raises(LauncherError, match=r'needs h11, which is not installed; pip install "iocflow\[http\]"'):
        source_at("http:8080/orders")
