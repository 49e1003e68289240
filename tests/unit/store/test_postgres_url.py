"""What is told of a PostgreSQL store's URL."""

from __future__ import annotations

import pytest

from iocflow.store.postgres.store import without_password


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://ann:s3cret@host:5432/db?schema=x", "postgresql://ann@host:5432/db?schema=x"),
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgresql://ann:a@b:c@host/db", "postgresql://ann@host/db"),
    ],
)
def test_a_password_is_not_told(url: str, told: str) -> None:
    """A store's messages name its URL, and never the password in it."""
    assert without_password(url) == told
