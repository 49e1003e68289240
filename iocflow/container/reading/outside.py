"""What placeholders take from outside of the files: environment variables and secrets."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping

from iocflow.container.secrets import SHORTEST, Secrets
from iocflow.wiring import Findings, Place

__all__ = ["SECRETS_FOLDER", "Outside"]

SECRETS_FOLDER = "/run/secrets"
"""Where Docker and Podman mount secrets, one file each."""


class Outside:
    """The environment and the secrets of one document."""

    def __init__(
        self, environ: Mapping[str, str], secrets: Secrets, findings: Findings, *, folder: str = SECRETS_FOLDER
    ) -> None:
        """Take the environment and the `folder` of secret files; every secret that is read is added to `secrets`."""
        self._environ = environ
        self._secrets = secrets
        self._findings = findings
        self._folder = folder
        self._weak: set[str] = set()

    def variable(self, name: str) -> str | None:
        """Return the environment variable; one that is set but empty is an empty text."""
        return self._environ.get(name)

    def missing_variable(self, name: str, place: Place) -> None:
        """Note that the environment variable is not set."""
        near = difflib.get_close_matches(name, list(self._environ), n=1, cutoff=0.8)
        hint = f"did you mean `{near[0]}`?" if near else f"set it, or give a default: `${{env:{name}:…}}`"
        self._findings.error(place, f"environment variable `{name}` is not set", hint)

    def secret(self, name: str, place: Place) -> str | None:
        """Return the secret from its environment variable or else its file; None when there is neither.

        A file that is there and cannot be read is noted, and its secret is empty.
        """
        value = self._environ.get(_variable(name))
        return self._from_file(name, place) if value is None else self.keep(name, value, place)

    def has_secret(self, name: str) -> bool:
        """Return whether the secret is anywhere."""
        return _variable(name) in self._environ or os.path.exists(self._path(name))

    def missing_secret(self, name: str, place: Place) -> None:
        """Note that the secret is nowhere."""
        what = f"secret `{name}` is neither in `{_variable(name)}` of the environment nor in `{self._path(name)}`"
        self._findings.error(place, what, f"provide one, or give a default: `${{secret:{name}:}}`")

    def keep(self, name: str, value: str, place: Place) -> str:
        """Remember `value` as a secret and return it; warn when it is too short to be masked."""
        if not self._secrets.add(value) and value.strip() and name not in self._weak:
            self._weak.add(name)
            what = f"secret `{name}` has fewer than {SHORTEST} characters and is not masked"
            self._findings.warn(place, what, "use a longer one")
        return value

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def _from_file(self, name: str, place: Place) -> str | None:
        path = self._path(name)
        try:
            with open(path, encoding="utf-8", newline="") as file:
                text = file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            what = f"secret file `{path}` cannot be read: {error.strerror or error}"
            self._findings.error(place, what, "check what is mounted there")
            return ""
        except UnicodeDecodeError:
            self._findings.error(place, f"secret file `{path}` is not UTF-8", "store it as UTF-8 text")
            return ""
        return self.keep(name, text.removesuffix("\n").removesuffix("\r"), place)


def _variable(name: str) -> str:
    return name.upper().replace("-", "_")
