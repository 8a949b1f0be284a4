"""Results side by side: one column for each, one row for each name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from confide._helpers import clean, later
from confide.errors import PlanError
from confide.results.base import BaseResult
from confide.results.pages import table
from confide.results.pages.content import PUBLISHED, SIMULATED, level_words, privacy_line
from confide.results.pages.table import environment
from confide.schema.formulas.names import level_name

if TYPE_CHECKING:
    import pandas as pd
    from rich import cells as terminal
else:
    pd, terminal = later("pandas"), later("rich.cells")


TITLE = "Results side by side"
# The head of the rows, and the widest column of a result.
_ROWS, _MOST = "term", 40


@dataclass(frozen=True, repr=False)
class Comparison:
    """Several results with estimates, each in its own column.

    Each release was charged separately; the comparison costs nothing. Estimates from two releases of the same records are not independent,
    so a difference of two results has no interval here.

    Parameters
    ----------
    results : mapping of str to BaseResult
        Results by the titles of their columns.
    alpha : float, default 0.05
        One minus the level of the intervals.

    Examples
    --------
    >>> Comparison({}).alpha
    0.05
    """

    results: Mapping[str, BaseResult]
    alpha: float = 0.05

    def to_frame(self) -> pd.DataFrame:
        """One row for each name, in columns (result, "estimate" | "ci_low" | "ci_high"); NaN where a result has no such row or interval."""
        parts = {title: _numbers(one, self.alpha) for title, one in self.results.items()}
        joined = pd.concat(parts, axis=1)
        return joined.set_axis([name for name, _ in joined.index], axis=0)

    def summary(self) -> str:
        """The cells as text, at most 80 columns wide, in several blocks where the results need more."""
        names, cells = self._cells()
        heads = [clean(title) for title in self.results]
        wide = [min(max(map(terminal.cell_len, (head, *own))), _MOST) for head, own in zip(heads, cells, strict=True)]
        first = min(max(map(terminal.cell_len, (_ROWS, *names))), table.WIDEST - 2 - max(wide))
        lines = [TITLE, self._published]
        places = list(range(len(heads)))
        while places:
            taken = [places.pop(0)]
            while places and first + 2 + sum(wide[k] + 2 for k in taken) + wide[places[0]] <= table.WIDEST:
                taken.append(places.pop(0))
            own = [wide[k] for k in taken]
            lines += ["", *self._row(_ROWS, [heads[k] for k in taken], first, own)]
            lines.append("-" * (first + sum(size + 2 for size in own)))
            for place, name in enumerate(names):
                lines += self._row(name, [cells[k][place] for k in taken], first, own)
        lines.append("")
        for label, note in self._notes():
            lines += table.labelled(label, note, table.WIDEST)
        return "\n".join(line.rstrip() for line in lines)

    @staticmethod
    def _row(name: str, cells: Sequence[str], first: int, sizes: Sequence[int]) -> list[str]:
        """One row over as many lines as its longest cell needs."""
        parts = [
            table.wrapped(name, first),
            *(table.wrapped(cell, size) for cell, size in zip(cells, sizes, strict=True)),
        ]
        return [
            "  ".join(
                table.padded(part, size, right)
                for part, size, right in zip(line, (first, *sizes), (0, *[1] * len(sizes)), strict=True)
            )
            for line in zip_longest(*parts, fillvalue="")
        ]

    @property
    def _published(self) -> str:
        return SIMULATED if any(one.simulated for one in self.results.values()) else PUBLISHED

    def to_markdown(self) -> str:
        """The cells as a table of Markdown."""
        from confide.results.pages.export import markdown

        names, cells = self._cells()
        rows = tuple(zip(names, *cells, strict=True))
        notes = " ".join(f"{label}: {words}." for label, words in self._notes())
        return markdown(table.Document(TITLE, rows, (_ROWS, *self.results), notes))

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """Names in the order in which they come, and the cells of each result."""
        found = [_said(one, self.alpha) for one in self.results.values()]
        rows = list(dict.fromkeys(row for one in found for row in one))
        return [level_name(name) for name, _ in rows], [[one.get(row, "") for row in rows] for one in found]

    def _notes(self) -> list[tuple[str, str]]:
        """The level of the intervals, then each result: its estimand, status, its guarantee, its release."""
        found = [("Cells", f"estimate ({level_words(self.alpha)} CI)")]
        for title, one in self.results.items():
            status = one.status.replace("_", " ")
            said = f"{one.title}; status {status}; {privacy_line(one)}; release ID {one.release_sha256[:8]}"
            found.append((clean(title), clean(said)))
        return found

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.results)} results: {', '.join(self.results)}>"

    def _repr_html_(self) -> str:
        names, cells = self._cells()
        page = environment().from_string(_PAGE)
        return page.render(
            titles=list(self.results),
            rows=list(zip(names, *cells, strict=True)),
            notes=[f"{label}: {words}" for label, words in self._notes()],
        )


_PAGE = """\
<table><thead><tr><th scope="col">term</th>{% for title in titles %}<th scope="col">{{ title }}</th>{% endfor %}</tr></thead><tbody>
{% for row in rows %}<tr><th scope="row">{{ row[0] }}</th>{% for cell in row[1:] %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table>{% for note in notes %}<p>{{ note }}</p>{% endfor %}
"""


def compare(results: Sequence[BaseResult] | Mapping[str, BaseResult], *, alpha: float = 0.05) -> Comparison:
    """Compare results with named estimates, each in its own column.

    Parameters
    ----------
    results : sequence of BaseResult, or mapping of str to BaseResult
        Two or more results, such as regressions, tables or intervals; a
        mapping gives the titles of the columns. Without titles a column is
        named by its number and response.
    alpha : float, default 0.05
        One minus the level of the intervals.

    Returns
    -------
    Comparison
        The estimates with their intervals; print it, or call `to_frame`.

    Raises
    ------
    PlanError
        There are fewer than two results, or one has no estimates.

    Examples
    --------
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
            f"compare takes two or more results of confide, {what}",
            "write cf.results.compare([first, second]), or with titles "
            "cf.results.compare({'all': first, 'women': second})",
        )
    for title, one in given.items():
        if not any(column.kind == "estimate" for column in one.columns(one._alpha(_level(one, alpha)))):
            raise PlanError(f"{title!r} is a {one.family} without a column of estimates and cannot be compared")
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
        names = table.view(one, level, every=True, columns=columns).names
    return pd.DataFrame(values, index=pd.MultiIndex.from_tuples(_told_apart(list(names))), dtype=float)


def _said(one: BaseResult, alpha: float) -> dict[tuple[str, int], str]:
    """Each row's estimate with its interval, in the digits of its table."""
    level = one._alpha(_level(one, alpha))
    seen = table.view(one, level, columns=one.columns(level))
    at, low = seen.first("estimate"), seen.first("interval") if one.has_intervals else None
    assert at is not None
    found = {}
    for cells, name in zip(seen.rows, _told_apart(seen.names), strict=True):
        ends = "" if low is None or cells[low] == table.DASH else f" ({table.joined(cells[low], cells[low + 1])})"
        found[name] = f"{cells[at]}{ends}"
    return found


def _told_apart(names: Sequence[Any]) -> list[tuple[str, int]]:
    """Each name with how often it stood before: levels may make two rows of one name."""
    before: dict[str, int] = {}
    found = []
    for name in map(str, names):
        before[name] = before.get(name, -1) + 1
        found.append((name, before[name]))
    return found
