"""Several analyses of one dataset: the method, its analyses, and a publication as a file."""

from confide.methods.publication.method import Publication, PublicationFile

__all__ = ["Publication", "PublicationFile"]
