"""What tables of lines say of their counts: records, few of them, and the share of values that were clipped."""

from __future__ import annotations

from math import sqrt

from confide import _special as special
from confide.aggregates.lines.linear_rows import ClippedRows
from confide.protocol import Noisy, Release
from confide.results.pages.words import Flag

__all__ = ["UNCHECKED", "PlainSample", "clipped_responses", "clipped_share", "count_text", "few_records"]

# The share above which, with 95 % certainty, a flag is raised.
_TOLERATED = 0.005
_TWO_SIDED, _ONE_SIDED = float(special.ndtri(0.975)), float(special.ndtri(0.95))

UNCHECKED = "not checked (clipping_check=False)"


class PlainSample:
    """What the table of a line says of how its records were drawn: nothing; a survey says more."""

    @property
    def _told(self) -> tuple[Flag, ...]:
        """Flags of every table."""
        return ()

    @property
    def _head(self) -> tuple[tuple[str, str], ...]:
        return (("Cov. type", "robust"),)


def few_records(count: Noisy) -> tuple[str, ...]:
    """The flag of a noisy count within three sds of 0: a hint at records that all dropped."""
    return ("few_records",) if float(count.decode()[0]) < 3 * sqrt(count.variance) else ()


def count_text(count: Noisy) -> str:
    """The noisy count with its 95 % margin."""
    return f"{float(count.decode()[0]):,.0f} ± {_TWO_SIDED * sqrt(count.variance):,.0f}"


def clipped_share(noisy: Noisy, records: float, unit: int = 1) -> tuple[bool, str]:
    """Whether a noisy count of clipped values stands above half a per cent of `records`, and the share with its 95 % margin.

    unit: what one value adds to the count. A share whose margin is more than all records is none.
    """
    records = max(records, 1.0)
    share, error = float(noisy.decode()[0]) / unit / records, sqrt(noisy.variance) / unit / records
    seen = share - _ONE_SIDED * error > _TOLERATED
    if _TWO_SIDED * error > 1:
        return seen, "not known: too few records for its noise"
    return seen, f"{min(max(share, 0.0), 1.0):.2%} ± {_TWO_SIDED * error:.2%}"


def clipped_responses(release: Release, records: float) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Flag and fact of the paid diagnostic: which share of the responses lay outside their bounds."""
    if "clipping" not in release.statistics:
        return ("clipping_unchecked",), (("Clipped responses", UNCHECKED),)
    seen, text = clipped_share(release["clipping"], records, ClippedRows.unit)
    return ("y_clipping",) if seen else (), (("Clipped responses", text),)
