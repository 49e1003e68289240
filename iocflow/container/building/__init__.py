"""From a checked description to objects.

In goes what `checking` describes; out come providers by id, and from those the beans and the core's processors, each
one built after all that it needs and closed before it.
"""

from iocflow.container.building.registry import Registry

__all__ = ["Registry"]
