"""Publishes a fare, as an airline would: `python -m samples.fare_drop.new_fare 117 99.99`; the next poll finds it.

The database is the one of `config/fare_drop.yaml`: `FARES_DB` of the environment, else `var/fares.db`.
"""

from __future__ import annotations

import argparse
import os
import re
from decimal import Decimal

from iocflow.activities import DatabaseError
from samples.fare_drop.fares import FaresDatabase

__all__ = ["fare_of", "main", "publish"]

_FARE = re.compile(r"[0-9]{1,6}(\.[0-9]{1,2})?")


def fare_of(text: str) -> Decimal:
    """Return the fare that was typed: more than nothing, less than a million, and in whole cents.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    if not _FARE.fullmatch(text) or not Decimal(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no fare; write a price, as in 99.99")
    return Decimal(text)


def publish(database: str, route_id: int, fare: Decimal) -> str:
    """Add a fare of a route that has one, and return what it was and is.

    Raises:
        LookupError: No airline flies that route.
    """
    with FaresDatabase(database).connect() as connection:
        cursor = connection.cursor()
        cursor.execute(
            "SELECT airline_id, airline_name, route_id, origin, destination, cents FROM fares"
            " WHERE route_id = ? ORDER BY id DESC LIMIT 1",
            (route_id,),
        )
        last = cursor.fetchone()
        if last is None:
            cursor.execute("SELECT DISTINCT route_id FROM fares ORDER BY route_id")
            known = ", ".join(str(route) for (route,) in cursor.fetchall())
            raise LookupError(f"no airline flies route {route_id}; there are {known}")
        cursor.execute(
            "INSERT INTO fares (airline_id, airline_name, route_id, origin, destination, cents)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (*last[:5], int(fare * 100)),
        )
    return f"{last[1]}: {last[3]} to {last[4]} was {last[5] / 100:.2f} and is {fare:.2f}"


def main() -> None:
    """Publish what the command line says; what cannot be published is told, with exit code 2."""
    parser = argparse.ArgumentParser(description="Publish a fare in the sample's database.")
    parser.add_argument("route_id", type=int)
    parser.add_argument("fare", type=fare_of)
    parser.add_argument("--database", default=os.environ.get("FARES_DB", "var/fares.db"))
    options = parser.parse_args()
    try:
        print(publish(options.database, options.route_id, options.fare))
    except (LookupError, OverflowError, DatabaseError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
