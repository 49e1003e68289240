"""Events to an HTTP server: a POST each."""

from __future__ import annotations

import urllib.error
import urllib.request
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from iocflow.durable.outgoing import PublisherAddressError, PublishError, PublishRefusedError

__all__ = ["HttpPublisher"]

TIMEOUT = 10.0
"""Seconds in which a server has to answer."""
CLOUD_EVENT = "application/cloudevents+json"
_AGAIN = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)


class HttpPublisher:
    """`https://host/path?token=…`: an event is the body of a POST, in the structured mode of CloudEvents' HTTP binding.

    The event's id is the `Idempotency-Key`. A status of 2xx says that it has arrived; 4xx that it was refused. A
    redirection is not followed.
    """

    def __init__(self, url: str, name: str, token: str) -> None:
        """Take the URL, what it is called in messages, and the token, empty for none."""
        self._url, self.name, self._token = url, name, token
        self._opener = urllib.request.build_opener(_NoRedirection)

    @classmethod
    def at(cls, text: str) -> HttpPublisher:
        """Return the publisher at an address.

        Raises:
            PublisherAddressError: The address is wrong.
        """
        parts = urlsplit(text)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        token = options.pop("token", "")
        if not parts.netloc or not parts.hostname or parts.username or options or parts.fragment:
            example = f"{parts.scheme}://HOST/PATH?token=TOKEN"
            raise PublisherAddressError(
                f"a publisher {parts.scheme}: names a host, and has the option token; write {example}"
            )
        name = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
        return cls(name, name, token)

    def publish(self, id: str, document: bytes) -> None:
        """Post an event.

        Raises:
            PublishRefusedError: The server answered with 4xx.
            PublishError: It did not answer, or has trouble of its own.
        """
        headers = {"Content-Type": CLOUD_EVENT, "Idempotency-Key": id}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(self._url, document, headers)
        try:
            with self._opener.open(request, timeout=TIMEOUT) as answer:
                answer.read()
        except urllib.error.HTTPError as error:
            error.close()
            said = f"{self.name} answered {error.code} {error.reason}"
            if HTTPStatus.BAD_REQUEST <= error.code < HTTPStatus.INTERNAL_SERVER_ERROR and error.code not in _AGAIN:
                raise PublishRefusedError(said) from error
            raise PublishError(said) from error
        except OSError as error:
            raise PublishError(f"{self.name} takes no event: {getattr(error, 'reason', error)}") from error

    def close(self) -> None:
        """Do nothing: each event has a connection of its own."""


class _NoRedirection(urllib.request.HTTPRedirectHandler):
    """Takes a redirection as an answer: a POST would be followed by a GET."""

    def redirect_request(self, *_: object) -> None:
        """Return None, so that the answer is an error."""
