"""What is told of a PostgreSQL store's URL."""

from __future__ import annotations

import pytest

from iocflow.store.errors import StoreUrlError
from iocflow.store.opening import check_url, open_store
from iocflow.store.postgres.store import without_password


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://ann:s3cret@host:5432/db?schema=x", "postgresql://ann@host:5432/db?schema=x"),
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgresql://ann:a@b:c@host/db", "postgresql://ann@host/db"),
        ("postgresql:///db?password=s3cret&schema=x", "postgresql:///db?schema=x"),
    ],
)
def test_a_password_is_not_told(url: str, told: str) -> None:
    """A store's messages name its URL, and never the password in it."""
    assert without_password(url) == told


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:///db",
        "postgres://ann:a%2Fb@host:5432,other:1/db?schema=a-1&sslmode=require&connect_timeout=3",
        "postgresql://[::1]:5432/db",
        "postgresql://host/db?user=ann@realm",
    ],
)
def test_a_url_that_is_one(url: str) -> None:
    """What libpq takes is taken, without a look at whether there is such a database."""
    check_url(url)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://host:0/db", "the port"),
        ("postgresql://host:5432,other:65536/db", "the port"),
        ("postgresql://ann:s3cret/x@host/db", "the port"),
        ("postgresql://ann:s3cret%@host/db", "write %23 or %25"),
        ("postgresql://ann:s3cret#1@host/db", "write %23 or %25"),
        ("postgresql://[::1/db", "IPv6"),
        ("postgresql://host/db?schema=a.b", "letters, digits"),
        ("postgresql://host/db?scema=a", "scema"),
        ("postgresql://host/db?connect_timeout=soon", "write a number"),
        ("postgresql://host/db?sslmode=verify", "verify-ca"),
    ],
)
def test_a_wrong_url_is_refused_without_a_server(url: str, told: str) -> None:
    """What no server could make right is told at once, with what to write instead, and never the password."""
    for ask in (check_url, open_store):
        with pytest.raises(StoreUrlError, match=told) as refused:
            ask(url)
        assert "; " in str(refused.value)
        assert "s3cret" not in str(refused.value)
