"""Rendering a Jinja2 template into a field of the context."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
import jinja2.meta
import jinja2.sandbox

from iocflow.activities.arguments import Rule, complaints, keep, path_rules
from iocflow.activities.errors import TemplateError
from iocflow.activities.fields import write_field
from iocflow.activity import Activity

__all__ = ["RenderTemplate"]


class RenderTemplate(Activity[Any]):
    """Renders a template with the fields of the context, each by its name, and puts the text into another field.

    It works on any context. A name that the context does not offer, or that is not set yet, is an error and never an
    empty text. Unless `trusted`, the template runs in Jinja's sandbox: it reaches no private attribute, changes no list
    or dict of the context and includes no other file. (The sandbox does not bound the time or memory it takes.)
    """

    def __init__(
        self,
        target: str,
        *,
        html: bool,
        template: str | None = None,
        file: str | Path | None = None,
        trusted: bool = False,
    ) -> None:
        """Compile the template.

        Args:
            target: The field that gets the text.
            html: Whether the text is HTML (or XML): then every value is escaped. The file's name does not matter.
            template: The template itself.
            file: The file that holds it, in UTF-8; one of the two must be given.
            trusted: Whether it may do all that Jinja lets templates do, such as including files of its folder.

        Raises:
            ValueError: Both or none of `template` and `file` are given.
            TemplateError: It is broken, or includes another file; the message begins with `file:line`.
        """
        keep(_rules({"target": target, "template": template, "file": file}))
        self.target = target
        self.place = _place(file)
        self._template = _compiled(template, file, html=html, trusted=trusted)

    @classmethod
    def check_arguments(cls, arguments: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        """Yield what the constructor would refuse; the template is read and compiled for that."""
        if cls.__init__ is not RenderTemplate.__init__:
            return
        left_out = {"template": None, "file": None} if arguments else {}
        yield from complaints(_rules({**left_out, **arguments}))
        given = [name for name in ("template", "file") if arguments.get(name) is not None]
        if len(given) == 1:
            trusted = bool(arguments.get("trusted"))
            compiling = partial(_compiled, arguments.get("template"), arguments.get("file"), html=True, trusted=trusted)
            yield from complaints([(given[0], compiling)])

    def execute(self, context: Any) -> None:
        """Render into `context.<target>`.

        Raises:
            TemplateError: It reads what the context does not offer, or does what the sandbox forbids.
        """
        try:
            text = self._template.render(_fields(context))
        except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            raise TemplateError(f"{self.place}:{_line(error)}: {error}") from error
        write_field(context, self.target, text, self.name)


def _rules(given: Mapping[str, Any]) -> Iterator[Rule]:
    """Yield the rules about the arguments that are `given`, but for the template itself."""
    yield from path_rules(given, "target")
    if {"template", "file"} <= given.keys():
        yield "template", partial(_one_of, given["template"], given["file"])


def _one_of(template: str | None, file: str | Path | None) -> None:
    if (template is None) == (file is None):
        raise ValueError("give either template or file")


def _place(file: str | Path | None) -> str:
    return "template" if file is None else str(file)


def _compiled(template: str | None, file: str | Path | None, *, html: bool, trusted: bool) -> jinja2.Template:
    """Return the template, compiled; the message of a `TemplateError` begins with `file:line`."""
    place = _place(file)
    source = template if template is not None else _read(Path(place))
    folder = jinja2.FileSystemLoader(Path(place).parent) if file is not None and trusted else None
    kind = jinja2.Environment if trusted else jinja2.sandbox.ImmutableSandboxedEnvironment
    environment = kind(autoescape=html, undefined=jinja2.StrictUndefined, loader=folder, keep_trailing_newline=True)
    try:
        tree = environment.parse(source)
        if not trusted and any(True for _ in jinja2.meta.find_referenced_templates(tree)):
            raise TemplateError(f"{place}:1: it includes another file, which only a trusted template may")
        return environment.from_string(source)
    except jinja2.TemplateSyntaxError as error:
        raise TemplateError(f"{place}:{error.lineno}: {error.message}") from error


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise TemplateError(f"{path}:1: cannot read the template: {error.strerror}; correct the path") from error
    except UnicodeDecodeError as error:
        raise TemplateError(f"{path}:1: the template is not in UTF-8: {error.reason}") from error


def _fields(context: Any) -> dict[str, Any]:
    """Return the public fields of the context that are set."""
    annotated = (name for base in type(context).__mro__ for name in inspect.get_annotations(base))
    names = dict.fromkeys([*annotated, *vars(context)])
    return {name: getattr(context, name) for name in names if not name.startswith("_") and hasattr(context, name)}


def _line(error: BaseException) -> int:
    """Return the line of the template that raised: Jinja's frames are named `<template>`."""
    line, trace = 1, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
