"""From a document to a checked description.

In goes a `Document`; out comes an `Examined`: every name looked up, every reference, argument and route compared with
what it meets, as `description` has it, and the order of building. Mistakes are added to the document's findings;
nothing is constructed.
"""

from iocflow.container.checking.examine import Examined, examine, examine_durables, examine_store

__all__ = ["Examined", "examine", "examine_durables", "examine_store"]
