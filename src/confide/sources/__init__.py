"""Where records are: tables and files, streamed in blocks; exact sums over them. This room is private.

Nothing leaves it but the exact integers that `aggregate` hands to a method's meter. No value, position or count of
records stands in an error, a warning, a log line or a `repr`.
"""

from __future__ import annotations

from confide.sources.formats.databases import Database, sql
from confide.sources.reading import read
from confide.sources.source import RecordSource

__all__ = ["Database", "RecordSource", "read", "sql"]
