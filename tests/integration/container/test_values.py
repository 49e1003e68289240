"""What constructors, functions and attributes are given."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from iocflow.container import App
from tests.unit.container import parts
from tests.unit.container.parts import more

Loaded = Callable[..., App]


def test_values_are_coerced(loaded: Loaded) -> None:
    """Each value arrives as the parameter's annotation wants it, durations as seconds or timedelta."""
    app = loaded("""
        values: {n: "25", pi: 3.5}
        beans:
          typed:
            class: .Typed
            args:
              count: ${n}
              ratio: 500ms
              pause: 5m
              price: "30.28"
              path: var/x
              mode: slow
              numbers: ["1", 2]
              table: {a: 2h, b: 1}
              home: {street: Main, number: "7"}
              unknown: {as: it is}
              plain: [1, "2"]
    """)
    with app:
        typed = app.get("typed", parts.Typed)
    assert (typed.count, typed.ratio, typed.pause, typed.price) == (25, 0.5, timedelta(minutes=5), Decimal("30.28"))
    assert (typed.path, typed.mode, typed.numbers) == (Path("var/x"), "slow", [1, 2])
    assert (typed.table, typed.home) == ({"a": 7200.0, "b": 1.0}, parts.Address("Main", 7))
    assert (typed.unknown, typed.plain) == ({"as": "it is"}, [1, "2"])


def test_what_has_annotations_of_its_own(loaded: Loaded) -> None:
    """The parts of a data class, a named tuple and a typed dict are coerced as parameters are, at every depth."""
    app = loaded("""
        beans:
          depot:
            class: .more.Depot
            args:
              courier: {name: c, pause: 2s, price: 1.10}
              plan: {pause: 500ms, tours: [[1h], {start: 2h, stops: "3"}]}
              pair: ["1", b]
              reserve: [1d]
    """)
    with app:
        depot = app.get("depot", more.Depot)
    assert depot.courier == {"name": "c", "pause": 2.0, "price": Decimal("1.10")}
    assert depot.plan == more.Plan(0.5, [more.Tour(timedelta(hours=1)), more.Tour(timedelta(hours=2), 3)])
    assert (depot.pair, depot.reserve) == ((1, "b"), more.Tour(timedelta(days=1)))


def test_a_bean_can_be_a_typed_dict(loaded: Loaded) -> None:
    """A reference to a dict, and an inner bean of the typed dict's own class, fit where a typed dict is wanted."""
    app = loaded("""
        beans:
          lent: {factory: .more.make_courier}
          one: {class: .more.Depot, args: {courier: !ref lent}}
          two: {class: .more.Depot, args: {courier: !new {class: .more.Courier, args: {name: d, pause: 2s}}}}
    """)
    with app:
        assert app.get("one", more.Depot).courier == {"name": "c"}
        assert app.get("two", more.Depot).courier == {"name": "d", "pause": 2.0}


def test_number_of_a_placeholder_can_be_text(loaded: Loaded) -> None:
    """A number that comes from `values:` is text where text is wanted; written there, it has to be quoted."""
    with loaded("values: {zip: 20146}\nbeans: {b: {class: .Smtp, args: {host: '${zip}'}}}") as app:
        assert app["b"].host == "20146"


def test_a_decimal_is_what_the_file_writes(loaded: Loaded) -> None:
    """A price keeps its last zero, also in a list or a data class, and also when it comes from `values:`."""
    app = loaded("""
        values: {net: 19.90}
        beans:
          prices:
            class: .Prices
            args:
              price: 30.10
              prices: [1.50, "${net}"]
              gross: "${net}"
              tariff: {base: 30.10, steps: {a: 1.50, b: "${net}"}, code: "${net}"}
              tariffs: [{base: 0.10}]
    """)
    with app:
        prices = app["prices"]
    assert list(map(str, (prices.price, *prices.prices, prices.gross))) == ["30.10", "1.50", "19.90", "19.90"]
    tariff = prices.tariff
    inside = (tariff.base, *tariff.steps.values(), tariff.code, prices.tariffs[0].base)
    assert list(map(str, inside)) == ["30.10", "1.50", "19.90", "19.90", "0.10"]


def test_references_in_lists_and_tables(loaded: Loaded) -> None:
    """References, inner beans, providers and types stand anywhere in a value, each checked against its place."""
    app = loaded("""
        beans:
          smtp: {class: .Smtp, args: {host: a}}
          clock: {class: .Clock}
          each: {class: .Smtp, scope: prototype, args: {host: p}}
          hub:
            class: .Hub
            args:
              sender: !ref smtp
              senders: [!ref smtp, !new {class: .Smtp, args: {host: inner}}]
              named: {one: !ref smtp}
              make: !provider each
              kind: !type .Smtp
              first: [!ref smtp, !ref clock]
              anything: {deep: [{er: !ref clock}, 3]}
    """)
    with app:
        hub, smtp, clock = app.get("hub", parts.Hub), app["smtp"], app["clock"]
        assert hub.sender is smtp
        assert [sender.host for sender in hub.senders] == ["a", "inner"]
        assert hub.named == {"one": smtp}
        assert hub.make is not None
        assert hub.make() is not hub.make()
        assert hub.kind is parts.Smtp
        assert hub.first == (smtp, clock)
        assert hub.anything == {"deep": [{"er": clock}, 3]}


def test_open_signatures(loaded: Loaded) -> None:
    """`*args` takes a list, `**kwargs` any other name, and parameters by position are filled by name in the file."""
    app = loaded("""
        beans:
          values: {class: .Values, args: {rest: ["1", 2], text: t, other: [x]}}
          by-position: {class: .Positional, args: {first: 1, rest: [a, b], last: 4}}
          short: {class: .Positional, args: {first: "1"}}
    """)
    with app:
        assert (app["values"].rest, app["values"].text, app["values"].more) == ((1, 2), "t", {"other": ["x"]})
        assert app["by-position"].taken == (1, 2, ("a", "b"), 4)
        assert app["short"].taken == (1, 2, (), 0)


def test_set(loaded: Loaded) -> None:
    """`set` puts attributes on the object, coerced by the annotation of the class or of a property's setter."""
    with loaded("beans: {c: {class: .Clock, set: {zone: CET, pace: 2s, offset: 3}}}") as app:
        assert (app["c"].zone, app["c"].pace, app["c"].offset) == ("CET", timedelta(seconds=2), 3)


def test_prototypes_share_nothing(loaded: Loaded) -> None:
    """Each look-up of a prototype gives a new object, with lists, tables and data classes of its own."""
    app = loaded("""
        beans:
          p:
            class: .Typed
            scope: prototype
            args: {numbers: [1], plain: {a: [{b: 1}], e: [], f: {}}, home: {street: s}}
          inner: {class: .Holder, scope: prototype, args: {other: [!new {class: .Clock}]}}
    """)
    with app:
        one, two = app["p"], app["p"]
        assert one is not two
        assert one.plain == two.plain == {"a": [{"b": 1}], "e": [], "f": {}}
        one.plain["a"][0]["b"] = 2
        one.plain["e"].append(1)
        one.plain["f"]["x"] = 1
        one.numbers.append(2)
        one.home.number = 9
        assert (two.plain, two.numbers, two.home.number) == ({"a": [{"b": 1}], "e": [], "f": {}}, [1], 1)
        assert app["inner"].other[0] is not app["inner"].other[0]


def test_factories_and_functions(loaded: Loaded) -> None:
    """`factory:` calls a function; `call:` is the function itself, with its collaborators bound."""
    app = loaded("""
        beans:
          made: {factory: .make_smtp, args: {host: h}}
          any: {factory: .make_anything, args: {size: 3}, scope: prototype}
          step: {call: .step, args: {sender: !ref made, times: "2"}}
          plain: {call: .decide}
    """)
    with app:
        assert app.get("made", parts.Smtp).host == "h"
        assert app["any"] == [3]
        assert app["any"] is not app["any"]
        app["step"](parts.Order())
        assert app["made"].sent == ["2"]
        assert app["plain"] is parts.decide


def test_templates(loaded: Loaded) -> None:
    """A child has its parent's keys; `args` and `set` are merged, tables inside of them too, and lists are replaced."""
    app = loaded("""
        beans:
          base: {abstract: true, class: .Values, args: {text: base, table: {a: 1, b: {c: 2, d: 3}}, list: [1, 2]}}
          child: {parent: base, args: {table: {b: {c: 9}}, list: [3]}}
          grandchild: {parent: child, args: {text: own}}
          concrete: {class: .Smtp, args: {host: a}, scope: prototype}
          from-concrete: {parent: concrete, args: {port: '2'}}
          other-maker: {parent: concrete, factory: .make_smtp, args: {host: b}, scope: singleton}
    """)
    with app:
        assert app["child"].more == {"table": {"a": 1, "b": {"c": 9, "d": 3}}, "list": [3]}
        assert (app["grandchild"].text, app["grandchild"].more) == ("own", app["child"].more)
        assert (app["from-concrete"].host, app["from-concrete"].port) == ("a", 2)
        assert app["from-concrete"] is not app["from-concrete"]
        assert app["other-maker"] is app["other-maker"]
        with pytest.raises(KeyError):
            app["base"]


def test_profiles_replace_beans(loaded: Loaded) -> None:
    """A chosen profile's beans stand in for those of the file; without it they are left alone."""
    body = """
        beans: {smtp: {class: .Smtp, args: {host: real}}}
        profiles: {test: {beans: {smtp: {class: .Smtp, args: {host: fake}}}}}
    """
    with loaded(body) as real, loaded(body, profiles=["test"]) as fake:
        assert (real["smtp"].host, fake["smtp"].host) == ("real", "fake")


def test_ids_that_are_words_of_containers(loaded: Loaded) -> None:
    """A bean may be called by any word, also one that dependency-injector's containers use themselves."""
    names = ("providers", "parent", "wire", "self", "config", "declarative_parent", "override", "class")
    body = "beans:\n" + "".join(f"  {name}: {{class: .Smtp, args: {{host: {name}}}}}\n" for name in names)
    with loaded(body) as app:
        assert [app[name].host for name in names] == list(names)


def test_arguments_may_have_any_name(loaded: Loaded) -> None:
    """Names that the providers of the container itself take are like any other."""
    with loaded("""
        beans:
          one: {class: .Values, args: {provides: 1, bean: 2, cls: 3, settings: 4}}
          each: {class: .Values, scope: prototype, args: {provides: 1}}
          holder: {class: .Hub, args: {anything: [!ref one, !ref each]}}
          act: {call: .takes_any, args: {provides: 5, holder: !ref holder}}
        processors:
          p: {context: .Order, sequence: [act]}
    """) as app:
        run = app.processor("p").do_activities().raise_for_error()
        assert run.context.lines == [{"provides": 1, "bean": 2, "cls": 3, "settings": 4}, {"provides": 1}, 5]
