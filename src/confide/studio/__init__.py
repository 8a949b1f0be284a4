"""The studio: a page on this machine for the steward of records and the analyst who asks her; `confide studio FOLDER`."""

from __future__ import annotations

from confide.studio.app import Studio, serve

__all__ = ["Studio", "serve"]
