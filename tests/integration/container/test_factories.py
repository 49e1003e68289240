"""What a factory makes is looked at when it is made: by its own annotation, and by what its uses want."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from iocflow.container import App, BuildError
from iocflow.container.failures import UnfitError

Loaded = Callable[..., App]
PROCESSOR = "processors:\n  p: {context: .Order, sequence: [note]%s}\n"
NOTE = "note: {class: .Note}"


@pytest.mark.parametrize(
    ("beans", "more", "told"),
    [
        (
            "note: {factory: .more.make_nothing}",
            "",
            "4:19: `factory` of bean `note` is to make something, and `make_nothing` made None",
        ),
        (
            f"m: {{factory: .more.make_wrong}}\n  {NOTE}",
            "",
            "4:16: `factory` of bean `m` is to make `Smtp`, and `make_wrong` made a `Clock`",
        ),
        (
            "note: {factory: .more.make_any}",
            "",
            "6:35: step 1 of processor `p` wants an activity, and `make_any` made a `Clock`",
        ),
        (
            f"m: {{factory: .more.make_any}}\n  {NOTE}",
            ", on-error: m",
            "7:52: `on-error` of processor `p` wants an error handler, and `make_any` made a `Clock`",
        ),
        (
            "m: {factory: .more.make_nothing_perhaps}\n  note: {class: .Send, args: {delegate: !ref m}}",
            "",
            "5:41: `delegate` of bean `note` wants `Sender`, and `make_nothing_perhaps` made None",
        ),
        (
            f"{NOTE}\n  s: {{class: .Send, args: {{delegate: !new {{factory: .more.make_any}}}}}}",
            "",
            "5:38: `delegate` of bean `s` wants `Sender`, and `make_any` made a `Clock`",
        ),
    ],
)
def test_what_does_not_fit(loaded: Loaded, beans: str, more: str, told: str) -> None:
    """A sentence at the place where something else is wanted, and what was built is closed."""
    with pytest.raises(BuildError) as refused:
        loaded(f"beans:\n  {beans}\n{PROCESSOR % more}")
    (mistake,) = refused.value.mistakes
    assert str(mistake).removeprefix("app.yaml:").partition("; ")[0] == told
    assert isinstance(refused.value.__cause__, UnfitError)


def test_what_fits(loaded: Loaded) -> None:
    """Factories of the right things are left alone, one that may make nothing where nothing is needed too."""
    body = f"""
        beans:
          none: {{factory: .more.make_nothing_perhaps}}
          sender: {{factory: .make_smtp}}
          list: {{factory: .make_anything, args: {{size: 1}}}}
          act: {{factory: .more.make_activity}}
          hub: {{class: .Hub, args: {{sender: !ref none, anything: !ref list, senders: [!ref sender]}}}}
          {NOTE}
        processors:
          p: {{context: .Order, sequence: [note, act]}}
    """
    with loaded(body) as app:
        assert app["hub"].sender is None
        assert app["hub"].anything == [1]
        assert app.processor("p").do_activities().context.line == "acted"


def test_a_prototype_is_looked_at_each_time(loaded: Loaded) -> None:
    """One that is made later raises the same sentence."""
    body = f"beans:\n  later: {{factory: .more.make_nothing, scope: prototype}}\n  {NOTE}\n{PROCESSOR % ''}"
    with loaded(body) as app, pytest.raises(UnfitError, match="is to make something, and `make_nothing` made None"):
        app["later"]
