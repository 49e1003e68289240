"""The four-step order as durable runs: credit, stock, bill, ship; killed in the middle and carried on."""

from __future__ import annotations

from samples.order.activities import Bank, BookingContext, CheckCredit, OrderContext, ReserveStock, Ship, bill, book
from samples.order.queue import ORDERS, Line, Order, Shipped

__all__ = [
    "ORDERS",
    "Bank",
    "BookingContext",
    "CheckCredit",
    "Line",
    "Order",
    "OrderContext",
    "ReserveStock",
    "Ship",
    "Shipped",
    "bill",
    "book",
]
