"""From described beans to dependency-injector providers."""

from __future__ import annotations

import copy
import datetime
import decimal
import enum
import functools
import pathlib
import types
import uuid
from collections.abc import Callable, Mapping
from typing import Any, cast

from dependency_injector import providers

from iocflow.activity import Activity, FunctionActivity, activity
from iocflow.container.building.lifecycle import Lifecycle
from iocflow.container.checking.description import (
    Bean,
    Constant,
    Entries,
    Inner,
    Items,
    Reference,
    Rule,
    Stepped,
    Value,
)
from iocflow.container.failures import UnfitError
from iocflow.container.inspecting.annotations import member_of, shown_one
from iocflow.error_handling import OnError

__all__ = ["Builder", "Provider"]

Provider = providers.Provider

_UNNAMED = vars(Activity)["name"]
"""The name of activities whose class gives them none."""

_IMMUTABLE = (
    str,
    int,
    float,
    complex,
    bytes,
    types.NoneType,
    type,
    types.FunctionType,
    enum.Enum,
    decimal.Decimal,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    pathlib.PurePath,
    uuid.UUID,
)


class Builder:
    """Makes providers; `provider_of` finds the provider of another bean or processor by its id, `bean_of` the bean."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        provider_of: Callable[[str], Provider[Any]],
        bean_of: Callable[[str], Bean | None],
    ) -> None:
        """Take where to note what has to be closed."""
        self._lifecycle = lifecycle
        self._provider_of = provider_of
        self._bean_of = bean_of
        self._steps: dict[str, Provider[Any]] = {}

    def provider(self, bean: Bean) -> Provider[Any]:
        """Return a new provider of a bean, whose references go to the providers that there are now."""
        if bean.kind == "call":
            return self._function(bean)
        # dependency-injector's `Singleton` is not safe under threads; this one builds one object whatever happens.
        kind = providers.ThreadSafeSingleton if bean.scope == "singleton" and bean.id else providers.Factory
        arguments = [self._injected(value) for value in bean.positional]
        keywords = {name: self._injected(value) for name, value in bean.keywords.items()}
        named = isinstance(bean.target, type) and issubclass(bean.target, Activity) and bool(bean.id)
        if bean.scope == "prototype" and not (bean.set or bean.init or named or bean.demands):
            return _provided(kind(bean.target, *arguments), keywords)
        settings = self._injected(Entries(bean.set)) if bean.set else {}
        return _provided(kind(functools.partial(self._made, bean), settings, *arguments), keywords)

    def value(self, value: Value) -> Any:
        """Return the object of a value, made now; a referenced one is shared as its scope says."""
        injected = self._injected(value)
        return injected() if isinstance(injected, providers.Provider) else injected

    def _function(self, bean: Bean) -> Provider[Any]:
        """Return the provider of a plain function, with its collaborators bound."""
        if not bean.keywords:
            return providers.Object(bean.target)
        keywords = {name: self._injected(value) for name, value in bean.keywords.items()}
        return _provided(providers.ThreadSafeSingleton(functools.partial, bean.target), keywords)

    def _made(self, bean: Bean, settings: Mapping[str, Any], /, *arguments: Any, **keywords: Any) -> Any:
        """Make one object: construct, name, set, initialise.

        Attributes are set here, because a Factory that sets them is several times slower.
        """
        try:
            made = bean.target(*arguments, **keywords)
            for demand in bean.demands:
                if not demand.met(made):
                    kind = "None" if made is None else shown_one(type(made))
                    raise UnfitError(f"{demand.wanted}, and `{bean.target.__name__}` made {kind}", demand.place)
            if bean.id and isinstance(made, Activity) and member_of(type(made), "name") is _UNNAMED:
                made.name = bean.id
            for name, value in settings.items():
                setattr(made, name, value)
            if bean.init:
                self._lifecycle.call(getattr(made, bean.init))
        except Exception as error:
            error.add_note(f"while {bean} ({bean.place}) was made")
            raise
        if bean.close:
            self._lifecycle.opened(str(bean), getattr(made, bean.close))
        return made

    def _injected(self, value: Value) -> Any:
        """Return a value as dependency-injector takes it: a provider, or an object that is given as it is."""
        if isinstance(value, Constant):
            return _constant(value.value)
        if isinstance(value, Reference):
            return self._provider_of(value.id)
        if isinstance(value, Inner):
            return self.provider(value.bean)
        if isinstance(value, Stepped):
            return self._step(value)
        if isinstance(value, Items):
            items = providers.List(*map(self._injected, value.items)) if value.items else providers.Callable(list)
            return items if value.kind is list else providers.Callable(value.kind, items)
        if isinstance(value, Entries):
            return providers.Dict({key: self._injected(one) for key, one in value.entries.items()})
        # Asked for when the object is made: the two beans may need each other.
        return providers.Callable(self._provider_of, value.id)

    def _step(self, value: Stepped) -> Any:
        """Return the provider of a bean as a step, with its options; the same step wherever the bean stands."""
        id = value.wire.id if isinstance(value.wire, Reference) else ""
        bean = self._bean_of(id) if isinstance(value.wire, Reference) else value.wire.bean
        made = self._injected(value.wire)
        if bean is None or not (bean.step_options or (bean.kind == "call" and value.sure)):
            return made
        if id and id in self._steps:
            return self._steps[id]
        kind = providers.ThreadSafeSingleton if id and bean.scope == "singleton" else providers.Factory
        chain: Any = providers.List(*map(self._handler, bean.on_error)) if bean.on_error else []
        step = kind(functools.partial(_as_step, bean), made, chain)
        return self._steps.setdefault(id, step) if id else step

    def _handler(self, rule: Rule) -> Any:
        answer = self._injected(rule.answer)
        return providers.Callable(OnError, rule.errors, answer) if rule.errors else answer


def _as_step(bean: Bean, made: Any, chain: list[Any]) -> Any:
    """Return what a bean made, as a step with the bean's options."""
    if not isinstance(made, Activity):  # the engine knows functions by identity, and two beans may have one
        made = FunctionActivity(functools.partial(made), name=bean.id or None)
    if not bean.step_options:
        return made
    options = {"mode": bean.mode and bean.mode.word, "on_lost": bean.on_lost and bean.on_lost.word}
    given: Any = {key: word for key, word in options.items() if word}
    return activity(made, on_error=chain, time_limit=bean.time_limit, **given)


def _provided(provider: Any, keywords: Mapping[str, Any]) -> Provider[Any]:
    """Return the provider with keyword arguments, of which its own constructor cannot take each: `provides`."""
    provider.set_kwargs(**keywords)
    return cast(Provider[Any], provider)


def _constant(value: Any) -> Any:
    """Return a constant such that no two objects share one that can change."""
    return value if isinstance(value, _IMMUTABLE) else providers.Callable(copy.deepcopy, value)
