"""The four-step order as durable runs: credit, stock, bill, ship; killed in the middle and carried on."""

from __future__ import annotations

from samples.order.activities import Bank, CheckCredit, OrderContext, ReserveStock, Ship, bill
from samples.order.queue import ORDERS, Line, Order

__all__ = ["ORDERS", "Bank", "CheckCredit", "Line", "Order", "OrderContext", "ReserveStock", "Ship", "bill"]
