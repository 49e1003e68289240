"""Durable runs from outside of the application: submitted and looked at by whoever knows its file, or its store."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from iocflow.container.checking import examine_durables, examine_store
from iocflow.container.failures import NotDurableError
from iocflow.container.loading import refused
from iocflow.container.nodes import has_unresolved
from iocflow.container.reading import Document, read_document
from iocflow.container.secrets import Secrets
from iocflow.wiring import Findings, Node, Scalar, Table
from iocflow.wiring.extras import extra

if TYPE_CHECKING:  # they are loaded when they are needed
    from iocflow.durable.client import Client

__all__ = ["client", "is_url", "store_url"]

_OF_PROCESSOR = ("context", "durable", "on-failure")
_OF_BEAN = ("class", "factory", "scope", "parent", "abstract")
"""What tells of a bean which context it makes."""


def is_url(source: str | os.PathLike[str]) -> bool:
    """Return whether `source` is the URL of a store, and no container file."""
    return "://" in os.fspath(source)


def client(
    source: str | os.PathLike[str],
    *,
    profiles: Iterable[str] = (),
    values: Mapping[str, Any] | None = None,
    allow: Iterable[str] = (),
    secrets: Secrets | None = None,
) -> Client:
    """Return what submits durable runs and tells of them; close it at the end.

    Of a container file only the store is opened: no bean is built, and only the modules of the contexts of durable
    processors are imported. With the URL of a store, nothing is imported, and nothing can be submitted.

    Args:
        source: The container file, or the URL of its store.
        profiles: As for `load`.
        values: As for `load`.
        allow: As for `load`.
        secrets: As for `load`.

    Raises:
        ConfigurationError: The file has mistakes in what concerns durable runs; all of those are told.
        NotDurableError: The file has no store.
        StoreError: The store cannot be opened.
    """
    if is_url(source):
        opened: Client = extra("durable.client").Client(extra("store").open_store(os.fspath(source), create=False), {})
        return opened
    document = read_document(source, profiles=profiles, values=values, allow=allow, secrets=secrets)
    part = _part(document, {"store": _store_node(document), **_durables(document)})
    described = examine_durables(part)
    url = _read_url(part)
    durable, intake = extra("durable.job").Durable, extra("durable.intake").Intake
    known = {
        id: intake(one.context, durable(**one.durable or {}), plain=not one.context_bean)
        for id, one in described.items()
    }
    made: Client = extra("durable.client").Client(extra("store").open_store(url), known)
    return made


def store_url(
    path: str | os.PathLike[str],
    *,
    profiles: Iterable[str] = (),
    values: Mapping[str, Any] | None = None,
    secrets: Secrets | None = None,
) -> str:
    """Return the URL of the store of a container file; nothing that the file names is imported.

    Raises:
        ConfigurationError: The URL is wrong, or cannot be found out.
        NotDurableError: The file has no store.
    """
    document = read_document(path, profiles=profiles, values=values, secrets=secrets)
    return _read_url(_part(document, {"store": _store_node(document)}))


def _read_url(part: Document) -> str:
    url = examine_store(part)
    if part.findings.failed:
        raise refused(part)
    return url


def _store_node(document: Document) -> Node:
    store = document.sections.get("store")
    if store is None:
        if not document.complete:  # it may be in what could not be read
            raise refused(document)
        raise NotDurableError(f"{document.path} has no store; write `store: sqlite:///var/app.db` in it")
    return store


def _durables(document: Document) -> dict[str, Node]:
    """Return of the file's processors what says how they are durable, and of its beans the contexts."""
    processors, beans = document.sections.get("processors"), document.sections.get("beans")
    if not isinstance(processors, Table):
        return {}
    durable = [id for id, _, one in processors if isinstance(one, Table) and "durable" in one.entries]
    found = _cut(processors, durable, _OF_PROCESSOR)
    contexts = [id for one in found.entries.values() if "." not in (id := _text(one, "context"))]
    if not isinstance(beans, Table) or not contexts:
        return {"processors": found}
    for id in contexts:  # it grows while it is walked through
        parent = _text(beans.entries[id], "parent") if id in beans.entries else ""
        if parent and parent not in contexts:
            contexts.append(parent)
    all_there = all(id in beans.entries for id in contexts)  # otherwise, the others are offered instead
    return {"processors": found, "beans": _cut(beans, contexts if all_there else beans.entries, _OF_BEAN)}


def _cut(section: Table, ids: Iterable[str], keys: Collection[str]) -> Table:
    """Return of a section some entries, and of these some keys."""
    entries: dict[str, Node] = {}
    for id in ids:
        one = section.entries[id]
        if isinstance(one, Table):
            said = {key: node for key, node in one.entries.items() if key in keys}
            entries[id] = Table(one.place, said, one.keys, one.tag)
    return Table(section.place, entries, section.keys)


def _text(node: Node, key: str) -> str:
    value = node.entries.get(key) if isinstance(node, Table) else None
    return str(value.value) if isinstance(value, Scalar) else ""


def _part(document: Document, sections: Mapping[str, Node]) -> Document:
    """Return a part of the document, with findings of its own: what else is wrong is not this program's business.

    Raises:
        ConfigurationError: Something of the part cannot be known.
    """
    if not document.complete or any(map(has_unresolved, sections.values())):
        raise refused(document)
    return replace(document, sections=dict(sections), unchosen=(), findings=Findings(origins=document.findings.origins))
