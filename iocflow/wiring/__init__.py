"""What the readers of a container file's sections share: nodes with their place, mistakes, the reader's contract."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from iocflow.errors import IocflowError

__all__ = [
    "BeanInfo",
    "ChecksArguments",
    "ConfigurationError",
    "Findings",
    "Listing",
    "Mistake",
    "Node",
    "Place",
    "Scalar",
    "Scope",
    "SectionReader",
    "Table",
    "Wired",
    "check_id",
    "did_you_mean",
]


_ID = re.compile(r"[^\W_][\w-]*")


class Place(NamedTuple):
    """A place in a file; `line` and `column` count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        """Return `file:line:column`, which editors and terminals turn into a link."""
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(slots=True, eq=False)
class Scalar:
    """A single value. (Nodes are never changed, but not frozen: that would take twice as long to make one.)

    Attributes:
        value: The value with its placeholders replaced.
        text: What the file says, placeholders and all; the only form that a message may print.
        tag: `ref`, `provider` or `type` for the tagged ones, else empty.
        filled: `text` with its placeholders replaced, numbers as their files write them; empty without a placeholder.
    """

    place: Place
    value: str | int | float | bool | None
    text: str
    tag: str = ""
    filled: str = ""

    @property
    def written(self) -> str:
        """The value as a file writes it: `30.10` stays that."""
        return self.value if isinstance(self.value, str) else self.filled or self.text


@dataclass(slots=True, eq=False)
class Listing:
    """A list of nodes."""

    place: Place
    items: tuple[Node, ...]
    tag: str = ""


@dataclass(slots=True, eq=False)
class Table:
    """A mapping from text keys to nodes; `keys` tells where each key stands. `tag` is `new` for an inner bean."""

    place: Place
    entries: Mapping[str, Node]
    keys: Mapping[str, Place]
    tag: str = ""

    def __iter__(self) -> Iterator[tuple[str, Place, Node]]:
        """Yield key, place of the key, and value, in the order of the file."""
        for key, node in self.entries.items():
            yield key, self.keys[key], node


Node = Scalar | Listing | Table


@dataclass(frozen=True, slots=True)
class Mistake:
    """One finding: where, what is wrong, what to write instead, and other places that matter (a definition)."""

    place: Place
    what: str
    remedy: str = ""
    related: tuple[tuple[Place, str], ...] = ()
    warning: bool = False

    def __str__(self) -> str:
        """Return `file:line:column: what; what to write instead`."""
        what = f"{self.what}; {self.remedy}" if self.remedy else self.what
        return f"{self.place}: {'warning: ' if self.warning else ''}{what}"


class ConfigurationError(IocflowError):
    """A container file was refused; nothing was constructed.

    Attributes:
        mistakes: Everything that was found, in the order of the files' lines.
    """

    def __init__(self, mistakes: Iterable[Mistake], rendered: str = "") -> None:
        """Take all `mistakes`; `rendered` is their text with the lines of the file and carets."""
        self.mistakes = tuple(mistakes)
        super().__init__(rendered or "\n".join(map(str, self.mistakes)))


@dataclass(slots=True)
class Findings:
    """Collects mistakes, so that all of them can be reported in one go.

    Attributes:
        mistakes: What was found.
        origins: By the place of a value that came through a placeholder, what tells the places that it came from; they
            are added to every mistake at that place.
    """

    mistakes: list[Mistake] = field(default_factory=list)
    origins: dict[Place, Callable[[], Iterable[tuple[Place, str]]]] = field(default_factory=dict)

    def error(self, place: Place, what: str, remedy: str = "", *, related: Iterable[tuple[Place, str]] = ()) -> None:
        """Note a mistake at `place`."""
        self.mistakes.append(Mistake(place, what, remedy, self._with_origins(place, related)))

    def warn(self, place: Place, what: str, remedy: str = "", *, related: Iterable[tuple[Place, str]] = ()) -> None:
        """Note something that works but is probably not meant."""
        self.mistakes.append(Mistake(place, what, remedy, self._with_origins(place, related), warning=True))

    def _with_origins(self, place: Place, related: Iterable[tuple[Place, str]]) -> tuple[tuple[Place, str], ...]:
        return (*related, *self.origins[place]()) if place in self.origins else tuple(related)

    @property
    def failed(self) -> bool:
        """Whether there is any mistake that is more than a warning."""
        return any(not mistake.warning for mistake in self.mistakes)


def check_id(id: str, noun: str, place: Place, findings: Findings) -> bool:
    """Return whether `id` can be the name of something in a container file, a `noun`; else note it at `place`.

    It stands in paths (`outer/inner`), routes, keys and addresses, where other characters have a meaning. The rule is
    the same for beans, processors, launchers, branches and results.
    """
    if _ID.fullmatch(id):
        return True
    bare, shown = id.strip(), " ".join(id.split())
    what = f"`{shown}` cannot be the id of a {noun}" if bare else f"the id of a {noun} is empty"
    remedy = "write letters, digits, `-` and `_`, beginning with a letter or a digit"
    if bare != id and _ID.fullmatch(bare):
        what, remedy = (
            f"the id `{bare}` of a {noun} has a blank beside it",
            f"write `{bare}`, without quotes",
        )
    elif _ID.fullmatch(id.partition(":")[0]):
        remedy = f"write a blank after the colon, `{id.partition(':')[0]}: …`"
    findings.error(place, what, remedy)
    return False


def did_you_mean(wrong: str, known: Iterable[str], *, listed: int = 12) -> str:
    """Return the remedy for a misspelt name: the nearest known one, else the list of all when it is short."""
    names = sorted(known)
    near = difflib.get_close_matches(wrong, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean `{near[0]}`?"
    if not names:
        return "there is none to choose from"
    return f"known: {', '.join(names)}" if len(names) <= listed else f"{len(names)} are known, none resembles it"


@dataclass(frozen=True, slots=True)
class BeanInfo:
    """What a checked file says of a bean or processor before anything is constructed.

    Attributes:
        type: The class it will be (`object` when a factory does not say).
        place: Where it is defined.
        context: A processor's context class, else None.
    """

    id: str
    type: type
    place: Place
    context: Any = None


@runtime_checkable
class ChecksArguments(Protocol):
    """A class of a bean that knows more of its arguments than their annotations say: that a file is there, a range.

    It is asked while a container file is checked, once for each bean of the class whose arguments fit their
    annotations, and before anything is constructed. (The class itself offers this: `isinstance(cls, ChecksArguments)`.)
    """

    @classmethod
    def check_arguments(cls, arguments: Mapping[str, object]) -> Iterable[tuple[str, str]]:
        """Yield what is wrong, each as the name of a parameter and the complaint with its remedy: `(name, text)`.

        It is pure: it constructs nothing that lasts, opens no connection and writes nothing; it may read files that
        the arguments name. It should not raise: whatever the constructor would refuse is to be yielded, all at once.

        Args:
            arguments: What the file gives, by parameter, as the constructor would get it. References to beans and what
                is made of them are left out, and so is what the file does not give: the defaults are the class's.
        """


class Wired(Protocol):
    """The built application as a section's builder sees it."""

    def __getitem__(self, id: str) -> Any:
        """Return the bean or processor of that id."""


class Scope(Protocol):
    """What a section reader is lent while the file is checked.

    Attributes:
        findings: Takes the mistakes.
        elsewhere: Whether the file is looked at with a profile that is not chosen, and may be for another machine: then
            nothing that is only not installed, or not there, is a mistake.
    """

    findings: Findings
    elsewhere: bool

    @property
    def beans(self) -> Mapping[str, BeanInfo]:
        """The beans by id."""

    @property
    def processors(self) -> Mapping[str, BeanInfo]:
        """The processors by id."""

    def coerce(self, node: Node, annotation: Any, what: str) -> Any:
        """Return the node's value as `annotation` wants it (pydantic's rules); a misfit is noted, and gives None.

        `what` names the value in the message, as in "every of launcher poll-fares".
        """

    def reference(self, node: Node, expected: type | tuple[type, ...], what: str) -> str | None:
        """Return the id that the scalar `node` names if it is a bean or processor of such a type, else note it."""

    def unknown_keys(self, table: Table, known: Iterable[str], what: str) -> None:
        """Note every key of `table` that is not `known`, with a did-you-mean."""

    def hide(self, secret: str) -> None:
        """Keep a secret that the file itself holds, as the password in a URL, out of messages and logs."""


class SectionReader(Protocol):
    """Reads one top-level section of a container file; found through the entry point group `iocflow.sections`.

    The entry point's name is the section's key; its object is a class without arguments. `read` runs once for the
    merged section, after `beans` and `processors` were checked, and constructs nothing: it notes mistakes in
    `scope.findings` and returns the builder which is called, with the built application, once every check has
    passed. What the builder returns is `app.section(key)`. For each profile that is not chosen, another object of the
    class reads the section as it would be with that one; its builder is never called.
    """

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the section, for editors."""

    def read(self, section: Node, scope: Scope) -> Callable[[Wired], object]:
        """Check `section`; return the builder of what it describes."""
