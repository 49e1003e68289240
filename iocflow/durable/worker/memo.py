"""A step's memo: JSON-able data, each change of which is durable before the statement that makes it is over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, SupportsIndex

Save = Callable[[], None]


class MemoList(list[Any]):
    """A list in a memo; what is copied of it is a plain list."""

    def __init__(self, items: Iterable[Any], save: Save, where: str) -> None:
        """Keep items; `save` makes the whole memo durable, `where` says in messages where this is in it."""
        super().__init__(kept(item, save, f"{where}[{i}]") for i, item in enumerate(items))
        self._save, self._where = save, where

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the engine behind in copies."""
        return list, (list(self),)

    def _kept(self, items: Iterable[Any]) -> list[Any]:
        return [kept(item, self._save, f"{self._where}[...]") for item in items]

    def __setitem__(self, at: Any, value: Any) -> None:
        """Set one or several, and save."""
        super().__setitem__(at, self._kept(value) if isinstance(at, slice) else self._kept([value])[0])
        self._save()

    def __delitem__(self, at: Any) -> None:
        """Delete one or several, and save."""
        super().__delitem__(at)
        self._save()

    def insert(self, at: SupportsIndex, value: Any) -> None:
        """Insert, and save."""
        super().insert(at, self._kept([value])[0])
        self._save()

    def append(self, value: Any) -> None:
        """Append, and save."""
        self.extend([value])

    def extend(self, values: Iterable[Any]) -> None:
        """Append several, and save."""
        super().extend(self._kept(values))
        self._save()

    def __iadd__(self, values: Iterable[Any]) -> Self:  # type: ignore[misc]
        """Append several, and save."""
        self.extend(values)
        return self

    def __imul__(self, times: SupportsIndex) -> Self:
        """Repeat what there is, and save."""
        self[:] = list(self) * times
        return self

    def pop(self, at: SupportsIndex = -1) -> Any:
        """Take one out, and save."""
        value = super().pop(at)
        self._save()
        return value

    def remove(self, value: Any) -> None:
        """Delete the first that is equal, and save."""
        del self[self.index(value)]

    def clear(self) -> None:
        """Delete all, and save."""
        del self[:]

    def reverse(self) -> None:
        """Turn the order round, and save."""
        super().reverse()
        self._save()

    def sort(self, **options: Any) -> None:
        """Sort, and save."""
        super().sort(**options)
        self._save()


class Memo(dict[str, Any]):
    """A memo, or a dict in one; what is copied of it is a plain dict."""

    def __init__(self, stored: Mapping[str, Any], save: Save, where: str = "context.step.memo") -> None:
        """Keep what was stored; `save` makes the whole memo durable, `where` says in messages where this is in it."""
        self._save, self._where = save, where
        super().__init__(self._kept(stored))

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the engine behind in copies."""
        return dict, (dict(self),)

    def _kept(self, items: Mapping[Any, Any]) -> dict[str, Any]:
        for name in items:
            if not isinstance(name, str):
                raise TypeError(f"{self._where}[{name!r}]: the keys of a memo are str, not {type(name).__name__}")
        return {name: kept(value, self._save, f"{self._where}[{name!r}]") for name, value in items.items()}

    def replace(self, value: Any) -> None:
        """Take the place of all that was there, and save.

        Raises:
            TypeError: It is no dict, or has something that JSON has not.
        """
        if value is self:
            return
        if not isinstance(value, Mapping):
            raise TypeError(f"{self._where} is a dict: it cannot be set to a {type(value).__name__}")
        items = self._kept(value)
        if items != self:
            super().clear()
            super().update(items)
            self._save()

    def __setitem__(self, name: str, value: Any) -> None:
        """Set, and save."""
        self.update({name: value})

    def __delitem__(self, name: str) -> None:
        """Delete, and save."""
        super().__delitem__(name)
        self._save()

    def update(self, *others: Any, **values: Any) -> None:
        """Set several, and save."""
        super().update(self._kept(dict(*others, **values)))
        self._save()

    def __ior__(self, other: Any) -> Self:  # type: ignore[override,misc]
        """Set several, and save."""
        self.update(other)
        return self

    def setdefault(self, name: str, default: Any = None) -> Any:
        """Return what has that name; if nothing has, set it to the default before, and save."""
        if name not in self:
            self[name] = default
        return self[name]

    def pop(self, name: str, *default: Any) -> Any:
        """Take one out, and save."""
        known = name in self
        value = super().pop(name, *default)
        if known:
            self._save()
        return value

    def popitem(self) -> tuple[str, Any]:
        """Take the last one out, and save."""
        item = super().popitem()
        self._save()
        return item

    def clear(self) -> None:
        """Delete all, and save."""
        super().clear()
        self._save()


def kept(value: Any, save: Save, where: str) -> Any:
    """Return a value as a memo keeps it: what it contains is copied, so that its changes are noticed.

    Raises:
        TypeError: It has something that JSON has not.
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return Memo(value, save, where)
    if isinstance(value, list | tuple):
        return MemoList(value, save, where)
    kind = type(value).__name__
    raise TypeError(f"{where} is a {kind}: a memo keeps str, int, float, bool, None, and lists and dicts of them")
