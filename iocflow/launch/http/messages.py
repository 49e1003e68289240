"""What passes between a connection and those who answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Protocol

__all__ = ["Admission", "Request", "Response", "Site", "json_response", "problem"]


@dataclass(frozen=True, slots=True)
class Request:
    """A request without its body.

    Attributes:
        path: The path, with no percent-decoding and without the query.
        headers: The values by names in lower case; those of a header that came several times are joined by a comma.
    """

    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Response:
    """An answer.

    Attributes:
        headers: Further headers beside those of the content.
    """

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Admission:
    """That a request may send its body.

    Attributes:
        limit: The most bytes of it.
        seconds: How long it may take.
    """

    limit: int
    seconds: float


class Site(Protocol):
    """Who answers the requests to a path, and to what lies below it.

    All methods are called in the server's own thread, which serves everybody: none of them may block.
    """

    def admit(self, request: Request) -> Admission | Response:
        """Say how large a request's body may be; or refuse the request before its body is read."""

    async def answer(self, request: Request, body: bytes) -> Response:
        """Answer a request that came whole; it is carried out whether or not its sender still waits."""

    def stop(self) -> None:
        """Take nothing new from now on, and let those who wait for their turn know."""


def json_response(status: int, data: Any, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer that is JSON."""
    return Response(status, json.dumps(data, ensure_ascii=False).encode() + b"\n", headers=headers or {})


def problem(
    status: int,
    detail: str,
    *,
    retry_after: int = 0,
    headers: Mapping[str, str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> Response:
    """Return an answer that says what is wrong, as RFC 9457 has it.

    Args:
        status: The status code.
        detail: What is wrong, and what to do instead.
        retry_after: After how many seconds it is worth another try; 0 when that is no use, or unknown.
        headers: Further headers.
        more: Further members of the answer.
    """
    data = {"status": status, "title": HTTPStatus(status).phrase, "detail": detail, **(more or {})}
    told = {**(headers or {}), **({"Retry-After": str(retry_after)} if retry_after else {})}
    return replace(json_response(status, data, told), content_type="application/problem+json")
