"""Chi-square tests on released counts: independence, fit, and the trend of a proportion, aware of the noise.

Independence: with N the records and p, q the shares of rows and columns, D_ij = N_ij - N p_i q_j has the covariance

    C = N S_p (x) S_q + J V J',      S_p = diag p - p p',      J = (I - p 1') (x) (I - q 1'),

V the noise covariance of the cells; T = D' C^-1 D without the last row and column is chi-square with (I - 1)(J - 1) degrees of freedom.
Strata add up. Levels and strata with DP counts not distinguishable from zero are excluded. If an expected count is below 5, or a margin
below ten SDs of its noise, the null distribution is 1,999 tables simulated at the released margins, with noise. Source: C as Kifer,
Rogers 2017; the simulated null here.

Which tests a released table answers: as its calls, and under their names in scipy.stats with the table's columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import nan, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide._arrays import Array
from confide._helpers import later
from confide.errors import PlanError
from confide.methods.tables.draw import Margins, subsets
from confide.methods.tables.intervals import cell_name
from confide.methods.tables.reading import CellNumbers
from confide.noise import keyed_generator
from confide.results.hypothesis_tests import LOST, HypothesisTests, left_out, too_few, without
from confide.results.pages.content import Column
from confide.sums.cells.cell_sums import Axes

if TYPE_CHECKING:
    from confide.methods.tables.results import CellTable


# Calls of one kind in a message about a wide table.
_SHOWN = 3


@dataclass(frozen=True)
class TestAnswer:
    """A test that a table answers. call: of the table; verb, formula: its name in scipy.stats, and what it is asked of."""

    call: str
    verb: str
    formula: str


def answers(table: Any) -> tuple[TestAnswer, ...]:
    """The tests that a table of counts, shares or means answers; nothing for any other result.

    >>> import confide as cf
    >>> schema = cf.Schema({"sex": cf.Categorical(["f", "m"]), "gain": cf.Numeric(-9, 9)})
    >>> data = cf.read(schema.sample(1_000, seed=1), schema)
    >>> table = cf.tables.means("gain ~ sex", data, inference="population", privacy=cf.GDP(1.0), ledger=None)
    >>> [(answer.call, answer.verb, answer.formula) for answer in answers(table)]
    [("test('t', 'sex')", 'ttest_ind', 'gain ~ sex'), ("test('mean', value=0)", 'ttest_rel', 'gain')]
    """
    kind = table.kind if isinstance(table, CellNumbers) else ""
    found = {"counts": _of_counts, "shares": _of_counts, "means": _of_means}.get(kind)
    return () if found is None else tuple(found(table))


def available_answers(found: Iterable[TestAnswer]) -> list[TestAnswer]:
    """The first few of each test."""
    kept: dict[str, list[TestAnswer]] = {}
    for answer in found:
        kept.setdefault(answer.verb, []).append(answer)
    return [answer for own in kept.values() for answer in own[:_SHOWN]]


def said_of(table: CellTable) -> str:
    """The tests that a table answers, in words, for errors."""
    calls = ", ".join(answer.call for answer in available_answers(answers(table)))
    named = ", ".join(own.name for own in table.layout.crossing.attributes) or "none"
    return f"this table of {table.kind} answers {calls or 'no test'} (its attributes: {named})"


def refused(table: CellTable, kind: str, *attributes: str | None) -> PlanError:
    """The error of a test that a table does not answer."""
    asked = ", ".join(repr(one) for one in (kind, *attributes) if one is not None)
    other = "for counts plan cf.tables.Counts" if table.kind == "means" else "for means plan cf.tables.Means"
    return PlanError(f"no answer to test({asked}): {said_of(table)}; {other}, for ranks cf.tests.mannwhitneyu")


def _of_means(table: CellTable) -> Iterator[TestAnswer]:
    every, several = table.layout.crossing.attributes, len(table.measured) > 1
    alone = [every[axes[0]] for axes in table.marginals if len(axes) == 1]
    for own in alone:
        kind, verb = ("t", "ttest_ind") if own.size == 2 else ("f", "f_oneway")
        for column in table.measured:
            of = f", of={column!r}" if several else ""
            yield TestAnswer(f"test({kind!r}, {own.name!r}{of})", verb, f"{column} ~ {own.name}")
    for place, column in enumerate(table.measured):
        low, high = table.bounds(place)
        if low < 0 < high:
            of = f", of={column!r}" if several else ""
            yield TestAnswer(f"test('mean', value=0{of})", "ttest_rel", column)


def _of_counts(table: CellTable) -> Iterator[TestAnswer]:
    every = table.layout.crossing.attributes
    pairs = [(every[a], every[b]) for a, b in combinations(range(len(every)), 2) if table.margins.contains((a, b))]
    for one, other in pairs:
        yield TestAnswer(
            f"test('independence', {one.name!r}, {other.name!r})", "chi2_contingency", f"{one.name} * {other.name}"
        )
    for case, dose in (pair for one, other in pairs for pair in ((one, other), (other, one)) if pair[0].size == 2):
        yield TestAnswer(f"test('trend', {case.name!r}, {dose.name!r})", "trend", f"{case.name} ~ {dose.name}")
    for own in every:
        yield TestAnswer(f"test('fit', {own.name!r})", "chisquare", own.name)
        yield TestAnswer(f"test('proportion', {own.name!r}, p=.5)", "binomtest", own.name)


stats = later("scipy.stats")


_RUNS, _AT_ONCE = 1999, 200
_FEW, _CLEAR = 5.0, 10.0
_LEAST_MARGIN = 0.5

_SKEWED = "a mean has fewer records than its skewness asks for, and the test may reject too often; a rank test does not ask for that"
TOO_FEW = "the records do not stand above three standard deviations of their noise; ask for a larger budget"


def noise_matrix(margins: Margins, axes: Axes, fixed: Axes = ()) -> Array:
    """The noise covariance of the cells of a marginal, (cells, cells); fixed: attributes at one and the same level, not in the cells."""
    free = tuple(axis for axis in axes if axis not in fixed)
    total: Array = np.zeros((margins.cells(free),) * 2)
    for part in subsets(axes):
        block: Array = np.ones((1, 1))
        for axis in free:
            size = margins.sizes[axis]
            own = size * np.eye(size) - 1.0 if axis in part else np.ones((size, size))
            block = np.asarray(np.kron(block, own), dtype=np.float64)
        weight = margins._spread(part, True)
        for axis in fixed:
            weight *= margins.sizes[axis] - 1 if axis in part else 1
        total += weight * block
    return total / margins.cells(axes) ** 2


def _statistics(tables: Array, noise: Array) -> Array:
    """T of noisy tables (runs, I, J) with one noise covariance."""
    runs, rows, columns = tables.shape
    by_row = np.maximum(tables.sum(axis=2), _LEAST_MARGIN)
    by_column = np.maximum(tables.sum(axis=1), _LEAST_MARGIN)
    p, q = by_row / by_row.sum(axis=1, keepdims=True), by_column / by_column.sum(axis=1, keepdims=True)
    size = np.maximum(tables.sum(axis=(1, 2)), 1.0)
    gap = (tables - size[:, None, None] * p[:, :, None] * q[:, None, :])[:, :-1, :-1].reshape(runs, -1)
    found = np.empty(runs)
    for start in range(0, runs, _AT_ONCE):
        own = slice(start, start + _AT_ONCE)
        a, b = p[own], q[own]
        sampling = np.einsum("rik,rjl->rijkl", _multinomial(a), _multinomial(b)) * size[own, None, None, None, None]
        kept = sampling[:, :-1, :-1, :-1, :-1].reshape(len(a), gap.shape[1], gap.shape[1])
        left = np.eye(rows)[None] - a[:, :, None]
        right = np.eye(columns)[None] - b[:, :, None]
        turned = np.einsum("rik,rjl->rijkl", left, right)[:, :-1, :-1].reshape(len(a), gap.shape[1], rows * columns)
        whole = kept + turned @ noise @ turned.transpose(0, 2, 1)
        found[own] = np.einsum("ri,ri->r", gap[own], np.linalg.solve(whole, gap[own][:, :, None])[:, :, 0])
    return found


def _multinomial(p: Array) -> Array:
    """diag p - p p' for each run."""
    return np.asarray(np.einsum("ri,ij->rij", p, np.eye(p.shape[1])) - p[:, :, None] * p[:, None, :])


def independence(table: CellTable, first: str | None, second: str | None, given: Any) -> HypothesisTests:
    """Whether two attributes are independent, within each combination of the attributes `given`."""
    pair, strata = _attributes(table, first, second, given)
    axes = tuple(sorted((*pair, *strata)))
    if not table.margins.contains(axes):
        names = " * ".join(table.layout.crossing.attributes[axis].name for axis in axes)
        raise PlanError(
            f"the release does not hold the crossing {names}, which this test needs", f"plan Counts({names!r})"
        )
    ordered = np.moveaxis(
        table.margins.table(axes)[0], [axes.index(axis) for axis in (*strata, *pair)], range(len(axes))
    ).reshape(-1, *(table.margins.sizes[axis] for axis in pair))
    noise = noise_matrix(table.margins, axes, strata)
    if pair[0] > pair[1]:
        rows, columns = (table.margins.sizes[axis] for axis in pair)
        noise = noise.reshape(columns, rows, columns, rows).transpose(1, 0, 3, 2).reshape(rows * columns, -1)
    within = ordered.sum(axis=(1, 2)) >= LOST * sqrt(float(noise.sum()))
    rows_told, columns_told = (_told(table, axis) for axis in pair)
    lost = _named(table, strata, within) if strata else []
    lost += [
        name
        for axis, told in zip(pair, (rows_told, columns_told), strict=True)
        for name in _named(table, (axis,), told)
    ]
    title = f"independence{without(lost)}"
    every = table.layout.crossing.attributes
    one, other = (every[axis] for axis in pair)
    heading = f"Chi-square test of independence: {one.name} and {other.name}"
    heading += f" within {', '.join(every[axis].name for axis in strata)}" if strata else ""
    if not within.any() or min(rows_told.sum(), columns_told.sum()) < 2:
        return _result(table, title, nan, nan, nan, "none", weak=too_few(lost), heading=heading)
    kept = np.outer(rows_told, columns_told).ravel()
    ordered, noise = ordered[within][:, rows_told][:, :, columns_told], noise[np.ix_(kept, kept)]
    generator = keyed_generator(table.drawn_sha256, f"independence {pair} {strata}")
    found = table_test(ordered, noise, generator)
    null = f"simulated, {_RUNS:,} tables at the released margins" if found.simulated else "chi-square"
    within_names = [cell_name(table.layout, strata, int(cell)) if strata else "" for cell in np.flatnonzero(within)]
    labels = [label for label, told in zip(other.labels, columns_told, strict=True) if told]
    shown = [label for label, told in zip(one.labels, rows_told, strict=True) if told]
    levels: dict[str, Sequence[Any]] = {other.name: labels * len(within_names)}
    if strata:
        levels = {"within": [name for name in within_names for _ in labels], **levels}
    counts = np.concatenate([own.T for own in ordered])
    return _result(
        table,
        title,
        found.statistic,
        found.df,
        found.pvalue,
        null,
        lost=lost,
        heading=heading,
        compared=_crossed(levels, shown, counts),
    )


def _crossed(
    levels: Mapping[str, Sequence[Any]], columns: Sequence[str], counts: Array
) -> Callable[[float], Sequence[Column]]:
    """The printed rows of a test of counts (rows, columns): n, each column, and its percentage; of two columns the last one's."""
    size = counts.sum(axis=1)
    share = counts / np.maximum(size, 1.0)[:, None]
    told = range(len(columns))[-1:] if len(columns) == 2 else range(len(columns))
    made = (
        *(Column(name, list(values), "text") for name, values in levels.items()),
        Column("n", size, "number", whole=True),
        *(Column(str(name), counts[:, k], "number", str(name), whole=True) for k, name in enumerate(columns)),
        *(Column(f"% {columns[k]}", share[:, k], "share") for k in told),
    )
    return lambda alpha: made


def _listed(own: Any, counts: Array, expected: Array | None = None) -> Callable[[float], Sequence[Column]]:
    """The printed rows of a test of one column: n of each level, its percentage, and the expected one."""
    made = (
        Column(own.name, list(own.labels), "text"),
        Column("n", counts, "number", whole=True),
        Column("%", counts / max(float(counts.sum()), 1.0), "share"),
        *(() if expected is None else (Column("expected %", expected, "share"),)),
    )
    return lambda alpha: made


def _told(table: CellTable, axis: int) -> NDArray[np.bool_]:
    """Levels of an attribute that the noise tells from empty."""
    return np.asarray(table.counts((axis,)) >= LOST * sqrt(table.count_variance((axis,))))


def _named(table: CellTable, axes: Axes, told: NDArray[np.bool_]) -> list[str]:
    """The cells of a marginal that are not told, by their levels."""
    return [cell_name(table.layout, axes, int(cell)) for cell in np.flatnonzero(~told)]


class TableTest(NamedTuple):
    """A chi-square statistic, its degrees of freedom, its p-value, and whether that is from simulated tables."""

    statistic: float
    df: float
    pvalue: float
    simulated: bool


def table_test(tables: Array, noise: Array, generator: np.random.Generator) -> TableTest:
    """Independence in noisy tables, one for each stratum, (strata, rows, columns); noise: the covariance of the cells of one."""
    total = float(_statistics(tables, noise).sum())
    df = float((tables.shape[1] - 1) * (tables.shape[2] - 1) * len(tables))
    margin_sd = sqrt(max(float(_row_noise(noise, tables.shape[1:], axis).max()) for axis in (0, 1)))
    expected, least = _expected(tables)
    if expected.min() >= _FEW and least >= _CLEAR * margin_sd:
        return TableTest(total, df, float(stats.chi2.sf(total, df)), False)
    root, simulated = _root(noise), np.zeros(_RUNS)
    for own in expected:
        size = max(round(float(own.sum())), 1)
        drawn = generator.multinomial(size, (own / own.sum()).ravel(), size=_RUNS)
        noisy = drawn + generator.standard_normal((_RUNS, len(root))) @ root.T
        simulated += _statistics(noisy.reshape(_RUNS, *tables.shape[1:]), noise)
    return TableTest(total, df, (1 + float((simulated >= total).sum())) / (_RUNS + 1), True)


def _attributes(table: CellTable, first: str | None, second: str | None, given: Any) -> tuple[Axes, Axes]:
    strata = () if given is None else table.layout.axes(given)
    if first is None or second is None:
        left = tuple(axis for axis in range(len(table.layout.crossing.attributes)) if axis not in strata)
        if len(left) != 2:
            raise PlanError(f"name the two attributes whose independence is tested: {said_of(table)}")
        return left, strata
    return (*table.layout.axes(first), *table.layout.axes(second)), strata


def _expected(tables: Array) -> tuple[Array, float]:
    """(expected counts under independence, the least margin)."""
    by_row = np.maximum(tables.sum(axis=2), _LEAST_MARGIN)
    by_column = np.maximum(tables.sum(axis=1), _LEAST_MARGIN)
    size = np.maximum(tables.sum(axis=(1, 2)), 1.0)
    p, q = by_row / by_row.sum(axis=1, keepdims=True), by_column / by_column.sum(axis=1, keepdims=True)
    expected = size[:, None, None] * p[:, :, None] * q[:, None, :]
    return expected, float(min(tables.sum(axis=2).min(), tables.sum(axis=1).min()))


def _row_noise(noise: Array, shape: Sequence[int], axis: int) -> Array:
    """Noise variances of the margins along an axis."""
    whole = noise.reshape(*shape, *shape)
    return np.asarray(np.einsum("ijil->i", whole) if axis == 0 else np.einsum("ijkj->j", whole))


def _root(covariance: Array) -> Array:
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def fit(table: CellTable, attribute: str, expected: Any) -> HypothesisTests:
    """Whether the levels of an attribute have public shares."""
    axes = table.layout.axes(attribute)
    own = table.layout.crossing.attributes[axes[0]]
    if isinstance(expected, Mapping):
        missing = [label for label in own.labels if label not in expected]
        if missing:
            raise PlanError(f"expected shares must name each level of {attribute!r}; {missing[0]!r} is missing")
        expected = [expected[label] for label in own.labels]
    p = np.full(own.size, 1.0) if expected is None else np.asarray(expected, dtype=np.float64)
    if p.shape != (own.size,) or not (p > 0).all():
        raise PlanError(
            f"expected shares of {attribute!r} must be {own.size} numbers above 0, in the order of its levels"
        )
    p = p / p.sum()
    counts, noise = table.counts(axes), noise_matrix(table.margins, axes)
    heading, compared = f"Chi-square test of fit: {own.name}", _listed(own, counts, p)
    if counts.sum() < LOST * sqrt(float(noise.sum())):
        return _result(table, "fit", nan, own.size - 1, nan, "none", weak=TOO_FEW, heading=heading)
    turned = (np.eye(own.size) - p[:, None])[:-1]

    def statistics(tables: Array) -> Array:
        size = np.maximum(tables.sum(axis=1), 1.0)
        gap = (tables - size[:, None] * p)[:, :-1]
        whole = size[:, None, None] * (np.diag(p) - np.outer(p, p))[None, :-1, :-1] + (turned @ noise @ turned.T)[None]
        return np.asarray(np.einsum("ri,ri->r", gap, np.linalg.solve(whole, gap[:, :, None])[:, :, 0]))

    total, size = float(statistics(counts[None])[0]), max(float(counts.sum()), 1.0)
    if (size * p).min() >= _FEW:
        pvalue = float(stats.chi2.sf(total, own.size - 1))
        return _result(table, "fit", total, own.size - 1, pvalue, "chi-square", heading=heading, compared=compared)
    generator = keyed_generator(table.drawn_sha256, f"fit {axes} {p.tolist()}")
    drawn = generator.multinomial(max(round(size), 1), p, size=_RUNS)
    simulated = statistics(drawn + generator.standard_normal((_RUNS, own.size)) @ _root(noise).T)
    pvalue = (1 + float((simulated >= total).sum())) / (_RUNS + 1)
    null = f"simulated, {_RUNS:,} tables"
    return _result(table, "fit", total, own.size - 1, pvalue, null, heading=heading, compared=compared)


def trend(
    table: CellTable, outcome: str, dose: str, scores: Sequence[float] | None, level: str | None
) -> HypothesisTests:
    """Whether the share of a level of the outcome (its last one when left out) changes with the dose: Cochran, Armitage, with noise."""
    case, by = table.layout.axes(outcome)[0], table.layout.axes(dose)[0]
    axes = tuple(sorted((case, by)))
    if not table.margins.contains(axes):
        raise PlanError(
            f"the release does not hold the crossing of {outcome} and {dose}", f"plan Counts('{outcome} * {dose}')"
        )
    own, doses = (table.layout.crossing.attributes[axis] for axis in (case, by))
    if level is not None and level not in own.labels:
        raise PlanError(f"{outcome!r} has no level {level!r}; it has: {', '.join(own.labels)}")
    chosen = own.labels.index(level) if level is not None else own.size - 1
    x = np.arange(doses.size, dtype=float) if scores is None else np.asarray(scores, dtype=np.float64)
    if x.shape != (doses.size,):
        raise PlanError(f"scores must be {doses.size} numbers, one for each level of {dose!r}, got {list(x.ravel())}")
    counts = table.margins.table(axes)[0]
    counts = counts if axes[0] == case else counts.T
    noise = noise_matrix(table.margins, axes)
    told, (cases, others) = _told(table, by), _either(table, case, chosen)
    lost = _named(table, (by,), told)
    missing = [*lost] if told.sum() < 2 else []
    missing += [f"{own.name}={own.labels[chosen]}"] if not cases else []
    missing += [f"{own.name} other than {own.labels[chosen]}"] if not others else []
    title = f"trend{without(lost)}"
    heading = f"Trend test (Cochran-Armitage): {own.name} = {own.labels[chosen]} by {doses.name}"
    if missing or not told.any():
        return _result(table, title, nan, nan, nan, "none", weak=too_few(missing), heading=heading)
    # levels of the dose that are left out have no weight
    counts = counts * told
    by_dose, size = counts.sum(axis=0), max(float(counts.sum()), 1.0)
    p = float(np.clip(counts[chosen].sum() / size, 1 / size, 1 - 1 / size))
    centred = x - float(by_dose @ x) / size
    weights = -p * np.ones((own.size, 1)) * centred * told
    weights[chosen] += centred * told
    flat = (weights if axes[0] == case else weights.T).ravel()
    variance = p * (1 - p) * float(np.maximum(by_dose, 0.0) @ centred**2) + float(flat @ noise @ flat)
    z = float((weights * counts).sum()) / sqrt(variance)
    rest = counts.sum(axis=0) - counts[chosen]
    compared = _crossed(
        {doses.name: [label for label, seen in zip(doses.labels, told, strict=True) if seen]},
        ["other levels" if own.size > 2 else own.labels[1 - chosen], own.labels[chosen]],
        np.stack([rest, counts[chosen]], axis=1)[told],
    )
    pvalue = float(2 * special.ndtr(-abs(z)))
    own_words: dict[str, Any] = {"statistic": "z", "lost": lost, "heading": heading, "compared": compared}
    return _result(table, title, z, nan, pvalue, "normal", **own_words)


def _either(table: CellTable, axis: int, level: int) -> tuple[bool, bool]:
    """Whether the records with a level, and those with any other, are told from none."""
    counts, variance = table.counts((axis,)), table.count_variance((axis,))
    rest = counts.sum() - counts[level]
    return bool(counts[level] >= LOST * sqrt(variance)), bool(rest >= LOST * sqrt((len(counts) - 1) * variance))


def proportion(table: CellTable, attribute: str, level: str | None, value: float, alternative: str) -> HypothesisTests:
    """Whether the share of a level, the last one when left out, is `value`.

    Exact where the number of records is public: the released count is binomial plus Gaussian noise, and p its tail (twice the smaller one).
    Else the normal distribution of (Y - p N) at the value, as the interval of a share.
    """
    if not 0 < value < 1:
        raise PlanError(f"p must be between 0 and 1, got {value!r}", "write p=0.2")
    if alternative not in ("two-sided", "less", "greater"):
        raise PlanError(f"alternative must be 'two-sided', 'less' or 'greater', got {alternative!r}")
    axes = table.layout.axes(attribute)
    own = table.layout.crossing.attributes[axes[0]]
    if level is not None and level not in own.labels:
        raise PlanError(f"{attribute!r} has no level {level!r}; it has: {', '.join(own.labels)}")
    chosen = own.labels.index(level) if level is not None else own.size - 1
    heading = f"Test of a share: {own.name} = {own.labels[chosen]}, null value {value:g}"
    y, size = float(table.counts(axes)[chosen]), table.size
    v = table.count_variance(axes)
    if table.margins.total is not None:
        n = round(size)
        k = np.arange(n + 1)
        mass = stats.binom.pmf(k, n, value)
        above = float(mass @ special.ndtr((k - y) / sqrt(v)))
        tails, null, statistic = (1.0 - above, above), "exact: binomial and noise", y
    else:
        if size < LOST * sqrt(table.count_variance(())):
            return _result(table, "proportion", nan, nan, nan, "none", weak=TOO_FEW, heading=heading)
        base = table.count_variance(())
        noise = v - 2 * value * base / own.size + value**2 * base
        z = (y - value * size) / sqrt(max(size, 0.0) * value * (1 - value) + noise)
        tails, null, statistic = (float(special.ndtr(z)), float(special.ndtr(-z))), "normal", z
    pvalue = {"less": tails[0], "greater": tails[1], "two-sided": min(1.0, 2 * min(tails))}[alternative]
    return _result(
        table,
        f"share of {own.name}={own.labels[chosen]}",
        statistic,
        nan,
        pvalue,
        null,
        statistic="z" if null == "normal" else "Y",
        heading=heading,
        compared=_listed(own, table.counts(axes)),
    )


def _result(
    table: CellTable,
    name: str,
    found: float,
    df: float,
    pvalue: float,
    null: str,
    *,
    weak: str = "",
    **others: Any,
) -> HypothesisTests:
    own = {"statistic": "chi-square", **others}
    return tested(table, (name,), [found], [df], [pvalue], null, weak=weak, **own)


def tested(
    table: Any,
    names: tuple[str, ...],
    statistics: Any,
    df: Any,
    pvalues: Any,
    null: str,
    *,
    weak: str = "",
    skewed: bool = False,
    lost: Sequence[str] = (),
    **others: Any,
) -> HypothesisTests:
    """A test on a table, with the table's guarantee. weak: why the records are too few, "" if they are not; skewed: too few for the
    skewness of a mean; lost: the excluded groups."""
    made = HypothesisTests(
        method=table.method,
        response=table.layout.words,
        status="imprecise" if weak or skewed else "valid",
        reason=weak or (_SKEWED if skewed else ""),
        requested=table.requested,
        guarantee=table.guarantee,
        target=f"{', '.join(names)}; in the table {table.layout.words}",
        intervals_for="the population that the records are a sample of: sampling error and privacy noise",
        release_sha256=table.release_sha256,
        ranges=table.ranges,
        drawn_sha256=table.drawn_sha256,
        simulated=table.simulated,
        facts=(*table.facts, *left_out(lost)),
        legend=tuple(line for line in table.legend if line[0] == "Ranges"),
        names=names,
        statistics=np.array(statistics),
        df=np.array(df),
        pvalues=np.array(pvalues),
        null=null,
        **others,
    )
    return replace(made, heading=made.title + without(lost)) if lost else made
