"""The correlation matrix of several bounded columns, with intervals, from one release.

Guarantee: mu-GDP, add/remove or substitution. A record gives (1, phi(u_1), ..., phi(u_p)), |phi| <= 1. The release is the noisy Gram
matrix of that, in exact integers (`methods.reduction.sums`), with sensitivity 1 + p in the Frobenius norm (sqrt(2) times that under
substitution). The variance is half as large off the diagonal, and the noise is rounded Gaussian. Fourth moments, which intervals need,
cost nothing more.

Interval: all r within the normal quantile times the standard error that they would have. The variance is (1 - r^2)^2 k/N plus the
variance by noise, which does not fall near 1; k >= 1 is the influence variance from fourth moments over (1 - r^2)^2. It covers the
correlation of the columns clipped to their bounds. The status is "imprecise" where a column's spread is below ten SDs of the noise,
which a note of the plan states beforehand. Sources: Dwork, Talwar, Thakurta, Zhang 2014 with exact noise (Dong, Roth, Su 2022);
influence variance: Devlin, Gnanadesikan, Kettenring 1975.

What a plan states of columns whose spread must be above the noise, and a result of columns whose spread is not.

From public facts alone: declared bounds, the SDs of noise, typical spreads where the schema states them. A column whose spread is not
above the noise has no correlation and no component, and the plan states this before the release.

A correlation matrix with its intervals, and its picture.

Which columns a reduction is of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import nan, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.optimize import brentq

from confide import _special as special
from confide._arrays import Array
from confide._helpers import later
from confide.core import Gram, Noisy, Plan, Release, ResultOptions, Statistic
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.methods.reduction.sums import JointMomentRows, JointMoments, clear_from
from confide.results.base import BaseResult
from confide.results.pages.content import LITERAL, Column, check_alpha, folded, level_words
from confide.results.pages.table import marked, noise_share
from confide.schema import CodedFrame, Integer, Numeric, Schema
from confide.schema.formulas.names import parted, quoted
from confide.sums.cells.moments import Measure, practice_places
from confide.sums.coding import BITS, ends
from confide.sums.columns import columns_of
from confide.sums.ranges import RangedMethod

# Standard deviations, as shares of the width between the bounds, of columns of which nothing typical is declared.
_SPREADS = {"a sixth": 1 / 6, "a tenth": 1 / 10}
# The variance of values that are even between the bounds, -1 and 1: one that needs more is seldom had.
_EVEN, _LEAST = 1 / 3, 1e-9

#: (mean, variance) of a column on -1 to 1 -> from how many records on its spread stands above its noise, all but surely.
Needed = Callable[[float, float], float]


def spread_words(measures: Sequence[Measure], schema: Any, needed: Needed, n: int | None) -> str:
    """From how many records on columns are answered; with n, from which standard deviation on, in the column's units."""
    told = "a column is answered where its spread is above the noise"
    whole = Schema.of(schema)
    typical, others = dict[str, float](), list[Measure]()
    for measure in measures:
        column = whole[measure.name] if measure.name in whole.names else None
        own = column.spread if isinstance(column, Numeric | Integer) else None
        if own is None:
            others.append(measure)
            continue
        mean, spread = (own.low + own.high) / 2, (own.high - own.low) / 4
        place = (mean - measure.middle) / measure.half
        typical[measure.name] = needed(place, min((spread / measure.half) ** 2, 1.0))
    if n is None and others:
        needs = {words: [needed(*at) for at in _places((2 * share) ** 2)] for words, share in _SPREADS.items()}
        said = ", ".join(
            f"{_rounded(low)} to {_rounded(high)} where it is {word}" for word, (low, high) in needs.items()
        )
        told += (
            ", from about so many records on, by its standard deviation as a part of the width between its bounds: "
            f"{said} (values about the middle of the bounds, and at one of them)"
        )
    if typical:
        told += "; by typical spreads " + ", ".join(f"{name} from {_rounded(count)}" for name, count in typical.items())
    return told if n is None else "; ".join([told, *_with(n, typical, others, needed)])


def _with(n: int, typical: Mapping[str, float], others: Sequence[Measure], needed: Needed) -> Iterator[str]:
    """The sentences for n records."""
    unlikely = [name for name, count in typical.items() if count > n]
    middle, end = (_least(needed, n, end=end) for end in (False, True))
    if others and middle is None:
        unlikely += [measure.name for measure in others]
    elif others:
        ends = [sqrt(variance) for variance in (middle, end) if variance is not None]
        parts = ", ".join(f"{one.name} {_ends([part * one.half for part in ends])} ({_bounds(one)})" for one in others)
        yield (
            f"with {n:,} records likely from these standard deviations on, the second where values lie at a bound: {parts}; where values "
            "are skewed or keep to a part of their bounds, declare narrower ones"
        )
    if unlikely:
        yield (
            f"with {n:,} records an answer is unlikely for columns {', '.join(unlikely)}; a larger budget or fewer "
            "columns help"
        )
    elif not others:
        yield f"with {n:,} records an answer is likely"


def hidden_words(measures: Iterable[Measure]) -> str:
    """The sentence on columns whose spread is not above the privacy noise."""
    told = ", ".join(f"{one.name} ({_bounds(one)})" for one in measures)
    return f"the spread of {told} is not above its noise: ask with more records or a larger budget"


def _places(variance: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """(mean, variance) in the middle of the bounds and as close to one of them as possible."""
    return (0.0, variance), (sqrt(1 - variance), variance)


def _least(needed: Needed, n: int, *, end: bool) -> float | None:
    """The least variance that n records distinguish from noise; None where that of even values is too small."""

    def lacks(variance: float) -> float:
        return needed(*_places(variance)[end]) / n - 1

    if not n or lacks(_EVEN) > 0:
        return None
    return _LEAST if lacks(_LEAST) < 0 else float(brentq(lacks, _LEAST, _EVEN))


def _ends(values: Sequence[float]) -> str:
    """One or two standard deviations in two digits."""
    return " to ".join(f"{float(f'{value:.2g}'):,g}" for value in values) + ("" if len(values) > 1 else " to none")


def _bounds(measure: Measure) -> str:
    return f"declared {measure.term.low:,g} to {measure.term.high:,g}"


def _rounded(count: float) -> str:
    """Two digits, upwards."""
    unit = 10 ** max(len(str(int(count))) - 2, 0)
    return f"{-(-int(count + 1) // unit) * unit:,}"


if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
else:
    pd = later("pandas")


# A map of at most so many columns has its numbers in it.
_WRITTEN = 15
# Times the variance of a normal distribution: where r is near 1, fourth moments less squares of second ones are noise.
_MOST = 20.0


def pair_names(columns: Sequence[str]) -> tuple[str, ...]:
    """ "r(a, b)" of all pairs, as in the upper triangle."""
    return tuple(f"r({a}, {b})" for a, b in combinations(columns, 2))


def unclear(own: JointMoments, measures: Sequence[Measure]) -> str:
    """Why columns are excluded, "" where none is."""
    hidden = [measure for measure, clear in zip(measures, own.clear, strict=True) if not clear]
    if not hidden:
        return ""
    rest = "ask for a larger budget, more records or fewer columns"
    return f"{hidden_words(hidden)}, or {rest}" if own.counted else f"the records are too few for the noise; {rest}"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CorrelationMatrix(BaseResult):
    """Correlations of all pairs, with intervals.

    Parameters
    ----------
    columns_of : tuple of str
        The columns.
    names : tuple of str
        Names of the pairs.
    estimates : array of float
        Correlation of each pair.
    sampling : array of float
        k, where (1 - r^2)^2 k is the sampling variance.
    noise : array of float
        Variance by privacy noise, which does not depend on r.
    bias : array of float
        Bound on the bias from selecting columns whose spread is above the
        noise.
    """

    columns_of: tuple[str, ...]
    names: tuple[str, ...]
    estimates: Array
    sampling: Array
    noise: Array
    bias: Array

    family: ClassVar[str] = "correlations"
    rows_are: ClassVar[str] = "pair"
    rows_called: ClassVar[str] = "correlations"

    @property
    def biased(self) -> bool:
        return bool((self.bias > 0).any())

    @classmethod
    def read(cls, release: Release, own: JointMoments, measures: Sequence[Measure]) -> CorrelationMatrix:
        """From noisy moments. Pairs of a column whose spread is not above the noise are excluded."""
        columns, pairs = tuple(measure.name for measure in measures), list(combinations(range(own.p), 2))
        r, kappa, noise = (np.full(len(pairs), nan) for _ in range(3))
        for i, (k, l) in enumerate(pairs):  # noqa: E741
            if own.clear[k] and own.clear[l]:
                r[i], own_sampling, noise[i] = own.pair(k, l).correlation()
                kappa[i] = own_sampling / (1 - r[i] ** 2) ** 2
        known = np.isfinite(r)
        status = "valid" if known.all() else "partial" if known.any() else "imprecise"
        return cls.of(
            release,
            response=", ".join(columns),
            target=f"correlations of {', '.join(columns)}",
            columns_of=columns,
            names=pair_names(columns),
            estimates=r,
            sampling=np.minimum(kappa, _MOST / own.size),
            noise=noise,
            bias=np.array([abs(x) * float(own.chosen[list(pair)].mean()) for x, pair in zip(r, pairs, strict=True)]),
            status=status,
            reason=unclear(own, measures),
            facts=(("n", f"{own.gram[0, 0]:,.0f} (noise SD {sqrt(own.variance):,.3g})"),),
        )

    @property
    def params(self) -> pd.Series[float]:
        """The correlations, indexed by pair."""
        return pd.Series(self.estimates, index=list(self.names), dtype="float64")

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors at the estimates."""
        return pd.Series(np.sqrt(self._variance(self.estimates)), index=list(self.names), dtype="float64")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._put("flags", marked(self.flags, self.names, self._share))

    def _variance(self, r: Array) -> Array:
        return np.asarray((1 - r * r) ** 2 * self.sampling + self.noise)

    @property
    def _share(self) -> Array:
        low, high = self._ends(0.05, self.noise, self.bias)
        alone = self._ends(0.05, 0.0 * self.noise, 0.0 * self.bias)
        return noise_share(high - low, alone[1] - alone[0])

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Confidence intervals of the correlations.

        They hold all r that lie within z standard errors of the estimate, with
        the standard error as it is at r.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level.

        Returns
        -------
        DataFrame
            Columns 0 (low) and 1 (high).
        """
        low, high = self._ends(alpha, self.noise, self.bias)
        return pd.DataFrame({0: low, 1: high}, index=list(self.names))

    def _ends(self, alpha: float, noise: Array, bias: Array) -> tuple[Array, Array]:
        z = -float(special.ndtri(check_alpha(alpha) / 2))
        ends = []
        for far in (-1.0, 1.0):
            inner, outer = self.estimates.copy(), np.full(len(self.estimates), far)
            for _ in range(50):
                middle = (inner + outer) / 2
                spread = np.sqrt((1 - middle * middle) ** 2 * self.sampling + noise)
                within = np.abs(middle - self.estimates) - bias <= z * spread
                inner, outer = np.where(within, middle, inner), np.where(within, outer, middle)
            ends.append(np.where(np.isnan(self.estimates), nan, outer))
        return ends[0], ends[1]

    def matrix(self) -> pd.DataFrame:
        """The whole matrix of correlations.

        Returns
        -------
        DataFrame
            (columns, columns), with 1 on the diagonal. Noise may leave it
            without being positive definite.
        """
        p = len(self.columns_of)
        whole = np.eye(p)
        whole[np.triu_indices(p, 1)] = self.estimates
        return pd.DataFrame(
            np.triu(whole) + np.triu(whole, 1).T, index=list(self.columns_of), columns=list(self.columns_of)
        )

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """estimate, p_value, ci_low, ci_high, privacy_share."""
        limits = self.conf_int(alpha)
        with np.errstate(all="ignore"):
            z = self.estimates / np.sqrt(self.sampling + self.noise)
        return (
            Column("term", self.names, "name"),
            Column("estimate", self.estimates, head="r"),
            Column("p_value", 2 * special.ndtr(-np.abs(z)), "p"),
            Column("ci_low", limits[0].to_numpy(), "interval"),
            Column("ci_high", limits[1].to_numpy(), "interval"),
            Column("privacy_share", self._share, "share"),
        )

    def more(self, alpha: float) -> dict[str, Any]:
        return {"columns": self.columns_of, "matrix": self.matrix().to_numpy()}

    @property
    def axis(self) -> str:
        return "correlation"

    @property
    def picture_size(self) -> tuple[float, float]:
        side = min(4.0 + 0.3 * len(self.columns_of), 12.0)
        return side + 1, side

    def draw(self, ax: Axes, alpha: float) -> None:
        """A heat map; pairs whose interval contains 0 are in brackets."""
        values, limits = self.matrix().to_numpy(), self.conf_int(alpha)
        picture = ax.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1)
        figure = ax.get_figure(root=True)
        if figure is not None:
            figure.colorbar(picture, ax=ax, label="correlation")
        p = len(self.columns_of)
        names = [folded(name) for name in self.columns_of]
        ax.set_xticks(range(p), names, rotation=45, ha="right", **LITERAL)
        ax.set_yticks(range(p), names, **LITERAL)
        if p > _WRITTEN:
            return
        for (k, l), low, high in zip(combinations(range(p), 2), limits[0], limits[1], strict=True):  # noqa: E741
            text = f"{values[k, l]:.2f}" if low > 0 or high < 0 else f"({values[k, l]:.2f})"
            for at in ((k, l), (l, k)):
                ax.text(
                    at[1],
                    at[0],
                    text,
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="white" if abs(values[k, l]) > 0.6 else "black",
                )

    def picture(self, alpha: float) -> str:
        return (
            f"Color: the correlation. Numbers in parentheses: the {level_words(alpha)} confidence interval contains 0."
        )


_MOST_COLUMNS = 200


def listed(columns: Any) -> tuple[str, ...]:
    """Columns as a tuple, from a list or from "a + b"; `PlanError` for fewer than two, or one twice."""
    found = tuple(parted(columns, "+")) if isinstance(columns, str) else columns
    if not isinstance(found, Sequence) or not all(isinstance(one, str) for one in found):
        raise PlanError(f"columns must be names, got {columns!r}", "write ('age', 'income') or 'age + income'")
    if not 2 <= len(found) <= _MOST_COLUMNS or len(set(found)) < len(found):
        raise PlanError(
            f"columns must name from 2 to {_MOST_COLUMNS} columns, each once, got {columns!r}", "write 'age + income'"
        )
    return tuple(found)


def measures_of(
    columns: Sequence[str], schema: Any, term_bounds: Mapping[str, tuple[float, float]] | None
) -> tuple[Measure, ...]:
    """The columns between their public bounds."""
    whole = Schema.of(schema)
    # a list holds names as they are, which may be no text of a formula
    texts = [quoted(name) if name in whole else name for name in columns]
    return tuple(Measure.of(text, whole, formula=" + ".join(columns), term_bounds=term_bounds) for text in texts)


def joint_moments(rows: JointMomentRows, noisy: Noisy) -> JointMoments:
    """The released moments, in units of one record."""
    unit = float(rows.steps) ** 2
    return JointMoments(noisy.decode() / unit, noisy.variance / unit**2)


def expected(plan: Plan, rows: JointMomentRows, schema: Any, n: int | None) -> str:
    """Which columns to expect an answer of, from public facts: bounds, noise, typical spreads where they are declared."""
    sd = plan.spend("moments").noise_sd
    assert sd is not None
    noise = (sd / float(rows.steps) ** 2) ** 2
    return spread_words(rows.measures, schema, lambda place, variance: float(clear_from(noise, place, variance)), n)


class OfColumns(RangedMethod):
    """Base of methods on joint moments of columns.

    Parameters
    ----------
    columns : tuple of str
        Names of columns or derived terms, as a list or as ``"a + b + c"``.
    """

    columns: tuple[str, ...]
    term_bounds: Mapping[str, tuple[float, float]] | None

    family: ClassVar[str] = "reduction"
    example: ClassVar[str] = '"x + y + z"'

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", listed(self.columns))

    def summed(self, schema: Schema) -> tuple[str, ...]:
        return columns_of(*measures_of(self.columns, schema, self.term_bounds))

    def about(self, schema: Any) -> JointMomentRows:
        return JointMomentRows(measures_of(self.columns, schema, self.term_bounds))

    def worst_pairs(self, schema: Any = None) -> tuple[tuple[Mapping[str, Any], ...], ...]:
        """Opposite corners of the bounds, where columns are plain."""
        if schema is None or any(name not in schema.names for name in self.columns):
            return ()
        low, high = ends(schema, self.columns)
        return (low, high), (low, {**low, self.columns[-1]: high[self.columns[-1]]})


@dataclass(frozen=True)
class Correlations(OfColumns):
    """Pearson's correlations of all pairs of columns.

    Estimates the population's correlations of the columns clipped to their
    bounds.

    Parameters
    ----------
    columns : tuple of str
        Names of columns or derived terms, as a list or as ``"a + b + c"``.

    Notes
    -----
    Guarantee: Gaussian DP with parameter mu, add/remove or substitution. The
    release is a noisy Gram matrix of exact integers with sensitivity 1 + p in
    the Frobenius norm (sqrt(2) times that under substitution) for p columns.

    References
    ----------
    Dwork, Talwar, Thakurta, Zhang 2014; Dong, Roth, Su 2022; Devlin,
    Gnanadesikan, Kettenring 1975.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({name: cf.Numeric(0, 10) for name in ("x", "y", "z")})
    >>> data = cf.read(schema.sample(5_000, seed=1), schema)
    >>> found = cf.infer(cf.release(Correlations("x + y + z"), data, cf.GDP(1.0), ledger=None))
    >>> found.names, found.matrix().shape
    (('r(x, y)', 'r(x, z)', 'r(y, z)'), (3, 3))
    """

    columns: tuple[str, ...]
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "correlations"
    source: ClassVar[str] = "Analyze Gauss on joint moments to order four, exact Gaussian noise"
    intervals: ClassVar[str] = (
        "correlations of the population's columns clipped to their bounds; sampling and privacy noise"
    )

    def statistics(self, about: Any, relation: str) -> Mapping[str, tuple[Statistic, Fraction]]:
        return {"moments": (Gram(about, entry_bits=BITS), Fraction(1))}

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """One Gram matrix; a note says from how many records on columns are answered."""
        made = super().plan(schema, privacy, n=n, public=public)
        return replace(made, notes=(*made.notes, expected(made, self.about(schema), schema, n)))

    def facts(self, about: JointMomentRows) -> Mapping[str, Any]:
        names = ", ".join(measure.name for measure in about.measures)
        return {"target": f"correlations of {names}", "intervals_for": self.intervals}

    def table(self, release: Release, about: JointMomentRows, options: ResultOptions) -> CorrelationMatrix:
        own = joint_moments(about, release["moments"])
        return CorrelationMatrix.read(release, own, about.measures)

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The correlations of test data."""
        practice = CodedFrame.checked(frame)
        measures = measures_of(self.columns, practice.schema, self.term_bounds)
        found = np.atleast_2d(np.corrcoef(practice_places(measures, practice).T))
        names = pair_names([measure.name for measure in measures])
        return dict(zip(names, found[np.triu_indices(len(measures), 1)].tolist(), strict=True))
