"""Named estimates whose intervals have no standard error: order statistics, inverted tests. One family, one small table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from confide._lazy import later
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.protocol import STATUSES
from confide.results.table import environment
from confide.results.words import SIMULATED, clean

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
else:
    pd = later("pandas")

__all__ = ["Intervals"]

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{{ title }}</title>
<style>body{font-family:sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;line-height:1.5}
table{border-collapse:collapse}td,th{padding:.25rem .8rem;text-align:right;border-bottom:1px solid #ccc}
th:first-child,td:first-child{text-align:left}.warn{color:#a00;font-weight:bold}</style></head><body>
<h1>{{ title }}</h1>{% if simulated %}<p class="warn">{{ simulated }}</p>{% endif %}
{{ table }}<p>{{ picture }}</p>
<h2>What it says</h2><dl>{% for label, words in notes %}<dt><b>{{ label }}</b></dt><dd>{{ words }}</dd>{% endfor %}</dl>
</body></html>
"""


@dataclass(frozen=True, eq=False, repr=False)
class Intervals:
    """Estimates with intervals at one level that was fixed in the plan.

    names (p,); estimates, low, high (p,), in the units of the data, an end of an interval infinite where there is none; level: of each
    interval; label: what the names are, for heads and axes; status, reason, flags, guarantees, target and covers as in `Estimates`.
    """

    method: str
    response: str
    names: tuple[str, ...]
    estimates: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    level: float
    status: str
    reason: str
    flags: tuple[str, ...]
    requested: Guarantee
    guarantee: Guarantee
    target: str
    covers: str
    release_sha256: str
    facts: tuple[tuple[str, str], ...] = ()
    label: str = ""
    simulated: bool = False

    def __post_init__(self) -> None:
        for field in ("estimates", "low", "high"):
            values = np.array(getattr(self, field), dtype=np.float64)
            if values.shape != (len(self.names),):
                raise PlanError(f"{field} must hold one number for each of {len(self.names)} names, got {values.shape}")
            values.flags.writeable = False
            object.__setattr__(self, field, values)
        if self.status not in STATUSES or bool(self.reason) == (self.status == "ok"):
            raise PlanError(
                f"status must be one of {', '.join(STATUSES)}, with a reason unless it is ok; got {self.status!r}"
            )

    @property
    def relation(self) -> str:
        """The neighbouring relation of the guarantee."""
        return str(self.guarantee.relation)

    @property
    def params(self) -> pd.Series[float]:
        """The estimates, indexed by name."""
        return pd.Series(np.array(self.estimates), index=list(self.names))

    def conf_int(self, alpha: float | None = None) -> pd.DataFrame:
        """Intervals: columns 0 (low) and 1 (high). The level was fixed in the plan: `PlanError` for another alpha."""
        if alpha is not None and abs(1 - alpha - self.level) > 1e-12:
            raise PlanError(
                f"the level of these intervals was fixed in the plan at {self.level:g}, got alpha={alpha:g}; "
                f"write alpha={1 - self.level:g}, or plan another release"
            )
        return pd.DataFrame({0: np.array(self.low), 1: np.array(self.high)}, index=list(self.names))

    def to_frame(self) -> pd.DataFrame:
        """estimate, low, high; one row for each name."""
        return pd.DataFrame({"estimate": self.params, "low": np.array(self.low), "high": np.array(self.high)})

    def _cells(self) -> list[tuple[str, str, str, str]]:
        def shown(value: float) -> str:
            return f"{value:,.6g}" if isfinite(value) else "none"

        return [
            (clean(name), *(shown(float(v)) for v in row))  # type: ignore[misc]
            for name, *row in zip(self.names, self.estimates, self.low, self.high, strict=True)
        ]

    def _notes(self) -> list[tuple[str, str]]:
        given = [
            ("Status", f"{self.status}: {self.reason or 'the intervals are valid under the assumptions stated here'}"),
            ("Flags", ", ".join(self.flags)),
            ("Guarantee", f"{self.guarantee}, requested {self.requested}"),
            ("In words", self.guarantee.describe()),
            ("Estimated", self.target),
            ("Intervals", self.covers),
            *self.facts,
            ("Release SHA", self.release_sha256),
        ]
        return [(label, clean(str(words))) for label, words in given if words]

    def summary(self) -> str:
        """The table as text, with status, guarantee and what the intervals cover."""
        heads = (clean(self.label), "estimate", "low", "high")
        rows = [heads, *self._cells()]
        sizes = [max(len(row[place]) for row in rows) + 2 for place in range(4)]
        lines = [
            row[0].ljust(sizes[0]) + "".join(cell.rjust(size) for cell, size in zip(row[1:], sizes[1:], strict=True))
            for row in rows
        ]
        title = clean(f"Private estimates of {self.response}, {self.level:.0%} intervals, {self.method}")
        warning = [f"*** {SIMULATED} ***"] if self.simulated else []
        return "\n".join([title, *warning, "", *lines, "", *(f"{label}: {words}" for label, words in self._notes())])

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} by {self.method!r}: {len(self.names)} estimates, status {self.status!r}, {self.guarantee}>"

    def to_dict(self) -> dict[str, Any]:
        """All that the result holds, in types of strict JSON; what is not finite is None."""

        def plain(values: Sequence[float]) -> list[float | None]:
            return [float(v) if isfinite(v) else None for v in values]

        return {
            "family": "intervals",
            "method": self.method,
            "response": self.response,
            "status": self.status,
            "reason": self.reason,
            "flags": list(self.flags),
            "simulated": self.simulated,
            "names": list(self.names),
            "estimate": plain(self.estimates),
            "low": plain(self.low),
            "high": plain(self.high),
            "level": self.level,
            "facts": [list(fact) for fact in self.facts],
            "target": self.target,
            "covers": self.covers,
            "relation": self.relation,
            "requested": {**self.requested.to_dict(), "text": str(self.requested)},
            "guarantee": {**self.guarantee.to_dict(), "text": str(self.guarantee)},
            "release_sha256": self.release_sha256,
        }

    def to_json(self) -> str:
        """`to_dict` as strict JSON."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Each estimate with its interval; an end that is not there runs to the edge as an arrow. Returns the Axes."""
        from matplotlib.figure import Figure

        if ax is None:
            ax = Figure(figsize=(6.4, 1.6 + 0.4 * len(self.names)), layout="constrained").add_subplot()
        places = np.arange(len(self.names))[::-1]
        finite = np.concatenate([np.asarray(part)[np.isfinite(part)] for part in (self.estimates, self.low, self.high)])
        if len(finite):
            span = float(finite.max() - finite.min()) or 1.0
            edges = (float(finite.min()) - 0.15 * span, float(finite.max()) + 0.15 * span)
            ax.set_xlim(*edges)
            ends = zip(places, self.low, self.high, strict=True)
            for place, low, high in ends:
                ax.hlines(place, max(low, edges[0]), min(high, edges[1]), color="#d1772e", linewidth=2)
                for end, edge, marker in ((low, edges[0], "<"), (high, edges[1], ">")):
                    ax.plot(
                        end if isfinite(end) else edge,
                        place,
                        marker="|" if isfinite(end) else marker,
                        color="#d1772e",
                        clip_on=False,
                    )
        ax.scatter(self.estimates, places, color="#1f4e79", zorder=3)
        ax.set_yticks(places, [clean(name) for name in self.names])
        ax.set_ylabel(clean(self.label))
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
        ax.set_ylim(-0.7, len(self.names) - 0.3)
        ax.set_xlabel(clean(f"{self.response}: estimate with {self.level:.0%} interval"))
        ax.spines[["top", "right"]].set_visible(False)
        return ax

    def _repr_html_(self) -> str:
        table = environment().from_string(
            "<table><tr><th>{{ label }}</th><th>estimate</th><th>low</th><th>high</th></tr>"
            "{% for row in rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>{% endfor %}</table>"
        )
        return str(table.render(rows=self._cells(), label=clean(self.label)))

    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML page; returns its path. `PlanError` when the file cannot be written."""
        from confide.results.report import svg

        page = environment().from_string(_PAGE)
        text = page.render(
            title=clean(f"Private estimates of {self.response}"),
            simulated=SIMULATED if self.simulated else "",
            table=Markup(self._repr_html_()),
            picture=svg(self.plot),
            notes=self._notes(),
        )
        try:
            Path(path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise PlanError(
                f"the report cannot be written to {str(path)!r}: {error.strerror}; give a writable path"
            ) from None
        return Path(path)
