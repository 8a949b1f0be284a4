"""Results side by side: one column for each, one row for each name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confide._helpers import clean, later
from confide.errors import PlanError
from confide.results.base import BaseResult
from confide.results.pages.content import SIMULATED
from confide.results.pages.table import environment, view

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")


@dataclass(frozen=True, repr=False)
class Comparison:
    """Several results with estimates, each a column: `cf.results.compare([a, b])` or `cf.results.compare({"all": a, "women": b})`.

    Each release is charged by itself: standing side by side costs nothing more and guarantees nothing more. Estimates of two releases of
    the same records are not independent, so that their difference has no interval here.
    """

    results: Mapping[str, BaseResult]
    alpha: float = 0.05

    def to_frame(self) -> pd.DataFrame:
        """One row for each name, in columns (result, "estimate" | "ci_low" | "ci_high"); NaN where a result has no such row or interval."""
        parts = {title: _numbers(one, self.alpha) for title, one in self.results.items()}
        joined = pd.concat(parts, axis=1)
        return joined.set_axis([name for name, _ in joined.index], axis=0)

    def summary(self) -> str:
        """The cells as text, with status, guarantee and what is estimated of each."""
        names, cells = self._cells()
        wide = [max(map(len, (title, *column))) for title, column in zip(self.results, cells, strict=True)]
        first = max(map(len, ("", *names)))
        lines = [" " * first + "".join(f"  {title:>{w}}" for title, w in zip(self.results, wide, strict=True))]
        lines.append("-" * len(lines[0]))
        for place, name in enumerate(names):
            lines.append(
                f"{name:<{first}}" + "".join(f"  {column[place]:>{w}}" for column, w in zip(cells, wide, strict=True))
            )
        return "\n".join([*lines, "-" * len(lines[0]), *self._notes()])

    def to_markdown(self) -> str:
        """The cells as a table of Markdown."""
        from confide.results.pages.export import markdown
        from confide.results.pages.table import Document

        names, cells = self._cells()
        rows = tuple(zip(names, *cells, strict=True))
        return markdown(Document("Results side by side", rows, ("term", *self.results), "\n\n".join(self._notes())))

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """Names in the order in which they come, and the cells of each result."""
        found = [_said(one, self.alpha) for one in self.results.values()]
        rows = list(dict.fromkeys(row for one in found for row in one))
        return [name for name, _ in rows], [[one.get(row, "") for row in rows] for one in found]

    def _notes(self) -> list[str]:
        return [
            f"{title}: {one.target or one.response}; status {one.status}; {SIMULATED if one.simulated else one.guarantee}; "
            f"release {one.release_sha256}"
            for title, one in self.results.items()
        ]

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.results)} results: {', '.join(self.results)}>"

    def _repr_html_(self) -> str:
        names, cells = self._cells()
        page = environment().from_string(_PAGE)
        return page.render(titles=list(self.results), rows=list(zip(names, *cells, strict=True)), notes=self._notes())


_PAGE = """\
<table><thead><tr><th scope="col">name</th>{% for title in titles %}<th scope="col">{{ title }}</th>{% endfor %}</tr></thead><tbody>
{% for row in rows %}<tr><th scope="row">{{ row[0] }}</th>{% for cell in row[1:] %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table>{% for note in notes %}<p>{{ note }}</p>{% endfor %}
"""


def compare(results: Sequence[BaseResult] | Mapping[str, BaseResult], *, alpha: float = 0.05) -> Comparison:
    """Put results with named estimates (regressions, tables, intervals) side by side.

    results: two or more, or a mapping from a title to each; without titles they are called by number, method and response. alpha: 1 - alpha
    is the level of the intervals.

    Raises `PlanError` for fewer than two, for what is no result with estimates, and for titles that are the same.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> noise = cf.noise.SimulatedNoise(1)
    >>> both = {mu: cf.linear_regression("y ~ x", data, privacy=cf.GDP(float(mu)), ledger=None, noise=noise) for mu in ("1", "2")}
    >>> list(cf.results.compare(both).to_frame().columns.levels[0])
    ['1', '2']
    """
    given = dict(results) if isinstance(results, Mapping) else _titled(results)
    wrong = next((one for one in given.values() if not isinstance(one, BaseResult)), None)
    if len(given) < 2 or wrong is not None:
        what = f"got {type(wrong).__name__}" if wrong is not None else f"got {len(given)}"
        raise PlanError(
            f"compare takes two or more results of confide, {what}; write cf.results.compare([first, second]), or with titles "
            "cf.results.compare({'all': first, 'women': second})"
        )
    for title, one in given.items():
        if not any(column.kind == "estimate" for column in one.columns(one._alpha(_level(one, alpha)))):
            raise PlanError(
                f"{title!r} is a {one.family} without a column of estimates, and cannot stand beside others"
            )
    return Comparison({clean(str(title)): one for title, one in given.items()}, alpha)


def _titled(results: Sequence[BaseResult]) -> dict[str, Any]:
    return {
        f"({place}) {one.response if isinstance(one, BaseResult) else ''}".strip(): one
        for place, one in enumerate(results, 1)
    }


def _level(one: BaseResult, alpha: float) -> float | None:
    return None if one.level is not None else alpha


def _numbers(one: BaseResult, alpha: float) -> pd.DataFrame:
    """Estimates and the ends of their intervals."""
    level = one._alpha(_level(one, alpha))
    columns = one.columns(level)
    ends = [column.values for column in columns if column.kind == "interval"][:2]
    estimates = next(column.values for column in columns if column.kind == "estimate")
    values = dict(zip(("estimate", "ci_low", "ci_high"), (estimates, *ends), strict=False))
    names = next((column.values for column in columns if column.kind == "name"), None)
    if names is None:
        names = view(one, level, every=True).names
    return pd.DataFrame(values, index=pd.MultiIndex.from_tuples(_told_apart(list(names))), dtype=float)


def _said(one: BaseResult, alpha: float) -> dict[tuple[str, int], str]:
    """Each row's estimate with its interval, in the digits of its table."""
    seen = view(one, one._alpha(_level(one, alpha)))
    rows = enumerate(_told_apart(seen.names))
    return {name: seen.said(row, interval=one.has_intervals) for row, name in rows}


def _told_apart(names: Sequence[Any]) -> list[tuple[str, int]]:
    """Each name with how often it stood before: levels may make two rows of one name."""
    before: dict[str, int] = {}
    found = []
    for name in map(str, names):
        before[name] = before.get(name, -1) + 1
        found.append((name, before[name]))
    return found
