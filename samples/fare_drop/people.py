"""The subscribers of the sample: the same 1,200 people on every machine, with the names that people really have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Subscriber", "subscribers"]

COUNT = 1200
_ROUTES = (
    *(("BWI", "LGA"), ("LGA", "BWI"), ("HAM", "OSL"), ("OSL", "HAM"), ("DUB", "BOS"), ("BOS", "DUB"), ("MUC", "LIS")),
    *(("LIS", "MUC"), ("PVG", "HKG"), ("HKG", "PVG"), ("CAI", "AMM"), ("TLV", "ATH"), ("GRU", "LIM"), ("DEL", "BLR")),
    *(("NRT", "CTS"), ("KRK", "CPH"), ("SFO", "SEA"), ("YUL", "YYZ"), ("NBO", "ADD"), ("SYD", "AKL")),
)


@dataclass(frozen=True)
class Subscriber:
    """Somebody who asked to hear of fares on some routes, each an origin and a destination."""

    id: int
    name: str
    address: str
    routes: tuple[tuple[str, str], ...]


def subscribers() -> Iterator[Subscriber]:
    """Yield everybody: first those of `people.json` with a name that programs stumble over, then made-up ones.

    No random number is drawn: who asked for which route follows from the number alone.
    """
    people: dict[str, Any] = json.loads(Path(__file__).with_name("people.json").read_text(encoding="utf-8"))
    number = 0
    for person in people["stumbled_over"]:
        number += 1
        yield Subscriber(number, person["name"], person["address"], tuple((a, b) for a, b in person["routes"]))
    cultures = people["cultures"]
    while number < COUNT:
        number += 1
        culture = cultures[number % len(cultures)]
        turn = number // len(cultures)
        given = culture["given"][turn % len(culture["given"])]
        family = culture["family"][turn // len(culture["given"]) % len(culture["family"])]
        # Every eightieth of the made-up people asked for BWI to LGA; the others for one or two of the other routes.
        first = 0 if number % 80 == 0 else 1 + number * 7 % (len(_ROUTES) - 1)
        second = 1 + number * 11 % (len(_ROUTES) - 1)
        routes = tuple(dict.fromkeys((_ROUTES[first], _ROUTES[second])))
        yield Subscriber(number, culture["form"].format(given=given, family=family), _address(number), routes)


def _address(number: int) -> str:
    domain = ("example.com", "example.net", "example.org")[number % 3]
    return f"subscriber.{number:04d}@{domain}"
