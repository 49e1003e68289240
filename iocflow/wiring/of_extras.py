"""The public names that need an extra: importing this module says which one, when it is not installed."""

from __future__ import annotations

from iocflow.wiring.extras import extra

Client = extra("durable.client").Client
Durable = extra("durable.job").Durable
