"""From a checked description to objects.

In goes what `checking` describes; out come providers by id, and from those the beans and the core's processors, each
one built after all that it needs and closed before it. Or, as a draft, the processors over stand-ins for the beans.
"""

from iocflow.container.building.draft import Draft
from iocflow.container.building.registry import Registry

__all__ = ["Draft", "Registry"]
