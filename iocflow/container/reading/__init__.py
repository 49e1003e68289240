"""From files to one document.

In goes the path of a container file, with the chosen profiles and the caller's values; out comes a `Document`: the
sections of all imported files merged, as nodes that know their place, every placeholder replaced. Nothing is imported
and no name is looked up here; what is wrong with the files is noted in `Document.findings`.
"""

from iocflow.container.reading.document import Document, adopt, read_document

__all__ = ["Document", "adopt", "read_document"]
