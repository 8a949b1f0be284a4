"""Many questions of one set of records: the method, its questions, and a publication as a file."""

from confide.publication.asked import Asked
from confide.publication.publication import Publication

__all__ = ["Asked", "Publication"]
