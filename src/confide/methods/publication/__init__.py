"""Many questions of one set of records: the method, its questions, and a publication as a file."""

from confide.methods.publication.method import Publication, PublicationFile

__all__ = ["Publication", "PublicationFile"]
