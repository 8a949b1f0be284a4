"""SSP: linear regression from sufficient statistics, with noise-aware intervals.

Estimates the population's least-squares coefficients of one or several responses on d terms. z = (1, x~), with x~ scaled by the public
bounds or by noisy ranges. Rows are weighted by w = min(1, R2/|z|^2). In the public box R2 = 1 + d, which no |z|^2 exceeds: nothing is
weighed. In a re-centered box, whose corners lie far away, R2 follows from a noisy histogram of |z|^2, beyond all records that can be
counted (`draw.chosen_cap`). With a `leverage_cap` of the user the estimand is another one, and the table's title says so.

Guarantee: mu-GDP, add-remove, or substitute with sqrt(2) times the noise (for several responses: a factor computed exactly). With v =
(z, sqrt(g2) t) the moments are the Gram matrix sum w v v' plus symmetric Gaussian noise; |w v v'|_F = w (|z|^2 + g2 t^2) <= R2 + g2.
For m responses without their products it is at most sqrt(R2^2 + 2 m g2 R2 + m g2^2), with them R2 + m g2 (`linear_rows`). The meat sum
w^2 r^2 z z' of a response has |.|_F <= R2. The count of clipped values moves by 1, and so does the count of records. A record lies in
one cell of each range, and in one of the histogram. All bounds hold in any box and for any R2, since |z| >= 1. Rows are coded for the
R2 in use so that the integers' bound is the same. All are Gaussian mechanisms on exact integers with rounded Gaussian noise; they
compose adaptively by adding the squares of mu, and the branches cost the same. Sources: Dwork, Talwar, Thakurta, Zhang 2014 (noisy Gram
matrix); Dong, Roth, Su 2022, Theorem 2 and Corollary 2 (Gaussian mechanism, composition).

Interval: Student t, from a covariance that contains the sampling of records and the privacy noise. It covers the coefficients of the
population's least-squares regression for responses clipped to the declared bounds. The relation need not be linear. cov="robust"
(default) allows unequal residual variances, "classical" assumes equal ones.

Regressions of one publication that share columns: what drawing them together would gain, as notes of the plan. They are drawn apart.

SSP releases the Gram matrix of v = (z, sqrt(g2) t), of Frobenius norm at most D (`moments.ssp`). For one response D^2 = (R2 + g2)^2,
for m responses on the same terms D^2 = R2^2 + 2 m g2 R2 + m g2^2. A coefficient's noise variance is proportional to D^2 (1/g2 + 1/2)
over the share of the budget. One matrix for several analyses has the sum of their shares. It is one analysis with several responses, or
a larger model of which smaller ones are read; the note gives its formula.

LeastSquares adds up scores in coordinates that are whitened for its terms, at its first fits. Two regressions on different terms
therefore have no sum that serves both. Regressions on the same terms could share the part that is of features alone (number, ranges,
leverages, their Gram matrix), a part f of the budget of each. For k regressions at equal shares the noise variance of the rest falls to
(1 - f)/(1 - f/k), at f = 0.2 never below 0.8. How one Gram matrix for all compares with the default apart: `confide lab bench
pooled_lines`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, nan, sqrt
from typing import Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide.core import Allowance, BudgetItem, Meter, Method, Plan, Release, ResultOptions, Source
from confide.core.events import leaves
from confide.errors import ConfideError, PlanError
from confide.guarantees import GDP, Guarantee
from confide.guarantees.validation import is_number
from confide.methods.regression.evidence.normal_equations import NoisyMoments, extent, fit, line_of, to_units
from confide.methods.regression.least_squares.method import alike, both_sides
from confide.methods.regression.linear_estimates import SharedEstimates
from confide.methods.regression.reference import least_squares
from confide.methods.regression.ssp.draw import REACH, Layout, chosen_cap, largest, margin, residual_limit
from confide.methods.regression.ssp.reading import read
from confide.methods.regression.sums.linear_rows import private_box
from confide.methods.regression.sums.whitened_rows import Frame
from confide.schema import Categorical, CodedFrame, ModelMatrix, Schema
from confide.schema.formulas.formula import parse_formula
from confide.sums.coding import Box
from confide.sums.ranges import RangedMethod

# A starting point of the residuals beyond this many half-ranges of y is useless; it is replaced by 0.
_FAR = 1e6
# Rows of a larger leverage are coded in no steps at all.
_LARGEST_CAP = 1e6
# Fewer records than this many noise units for each coefficient: no budget to spare for ranges.
_ENOUGH = 30


@dataclass(frozen=True)
class SSP(RangedMethod):
    """Linear regression by noisy sufficient statistics, for many analyses.

    The estimand is the least-squares coefficients in the population, of the
    responses clipped to their declared bounds. One release answers the model,
    its smaller models and tests across responses.

    Parameters
    ----------
    formula : str
        R-style formula, such as ``"y ~ a + b"``, or ``"y1 + y2 ~ a + b"`` for
        several responses on the same features.
    cov : {"robust", "classical"}, default "robust"
        Whether intervals allow unequal residual variances.
    leverage_cap : float, optional
        Cap of the squared length of a row, at least 1. Records beyond it are
        down-weighted, which reduces the noise and makes the estimand
        "leverage-weighted". With ``math.inf`` no record is weighted.
    recenter : {"auto", False}, default "auto"
        "auto" measures features from noisy ranges where there are enough
        records, as estimated. False uses the public bounds.
    products : bool, default False
        Whether to release the products of responses, too. Tests across
        responses are then sharp; otherwise they use an upper bound.

    See Also
    --------
    confide.regression.SharedEstimates : The result.
    confide.linear_regression : Shorter intervals for one regression.

    Notes
    -----
    Guarantee: mu-GDP under add-remove, and under substitution with sqrt(2)
    times the noise. The noisy Gram matrix is a Gaussian mechanism on exact
    integers; its sensitivity is the cap of the squared length of a row.

    References
    ----------
    Dwork, Talwar, Thakurta and Zhang (2014), Analyze Gauss, STOC.
    Dong, Roth and Su (2022), Gaussian differential privacy, JRSS-B 84.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> plan = SSP("y ~ x").plan(schema, cf.GDP(1.0))
    >>> plan.guarantee.mu, plan.relation
    (1.0, 'add-remove')
    """

    formula: str
    cov: str = "robust"
    leverage_cap: float | None = None
    clipping_check: bool = True
    term_bounds: Mapping[str, tuple[float, float]] | None = None
    recenter: str | bool = "auto"
    products: bool = False

    name: ClassVar[str] = "ssp"
    family: ClassVar[str] = "regression"
    asks: ClassVar[tuple[str, ...]] = ("subset",)
    task: ClassVar[str] = "linear_regression"
    kin: ClassVar[str] = "moments"
    # measured from public bounds, and no record weighed: without noise the least-squares line itself
    targets: ClassVar[Mapping[str, Any] | None] = {"leverage_cap": 1e3, "cov": "classical", "recenter": False}
    source: ClassVar[str] = "noisy Gram matrix (Dwork et al. 2014; Dong, Roth, Su 2022), noise-aware sandwich"
    intervals: ClassVar[str] = (
        "coefficients of the population's least-squares line; sampling, privacy noise, unequal variances"
    )

    def __post_init__(self) -> None:
        if self.cov not in ("robust", "classical"):
            raise PlanError(
                f'cov must be "robust" or "classical", got {self.cov!r}',
                'write cf.regression.SSP(formula, cov="robust")',
            )
        cap = self.leverage_cap
        if cap is not None and not (is_number(cap) and (1 <= cap <= _LARGEST_CAP or cap == inf)):
            raise PlanError(
                f"leverage_cap must be a number of at least 1 (and at most {_LARGEST_CAP:g}, or infinity), got {cap!r}",
                "leave it out for the least-squares line",
            )
        for name in ("clipping_check", "products"):
            if not isinstance(getattr(self, name), bool):
                raise PlanError(f"{name} must be True or False, got {getattr(self, name)!r}")
        if self.recenter is not False and self.recenter != "auto":
            raise PlanError(
                f'recenter must be "auto" or False, got {self.recenter!r}',
                'write cf.regression.SSP(formula, recenter="auto")',
            )

    def overlaps(
        self, questions: Mapping[str, Method], shares: Mapping[str, Fraction], plans: Mapping[str, Plan], schema: Any
    ) -> tuple[str, ...]:
        """Lines that could be drawn as one, with less noise."""
        return tuple(note for own in alike(questions, schema) for note in _one_matrix(own, shares, schema))

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """The spends, the guarantee and the expected standard errors (of the first response), from public facts."""
        layout = self._layout(schema)
        design = layout.design
        to_units(design, [])  # refuses bounds in whose units no variance can be computed
        allowance = Allowance.of(privacy, self, schema)
        event, statistics = layout.spends(allowance)
        level = allowance.level
        assert isinstance(level, GDP)
        responses = " and ".join(own.response.name for own in layout.designs)
        constants: dict[str, Any] = {"leverage_cap": layout.cap, "g2": layout.g2}
        if layout.recentring:
            constants["recentred above"] = _ENOUGH * (len(design.terms) + 1)
        facts: dict[str, Any] = {
            "passes": 1 + int(self.cov == "robust") + (2 + int(layout.counting)) * int(layout.recentring),
            "constants": constants,
            "target": layout.title(responses, design.names),
            "intervals_for": self._intervals_for(layout),
            "warnings": parse_formula(design.formula, schema).notes,
        }
        return Plan.of(self, schema, allowance, event, statistics, n=n, **facts)

    def _layout(self, schema: Any) -> Layout:
        whole = Schema.of(schema)
        return Layout.of(
            self.formula,
            whole,
            term_bounds=self.term_bounds,
            cap=self.leverage_cap,
            robust=self.cov == "robust",
            recenter=self.recenter,
            products=self.products,
        )

    def _design(self, schema: Any) -> ModelMatrix:
        """The design of the first response."""
        return self._layout(schema).design

    def _intervals_for(self, layout: Layout) -> str:
        variances = "unequal residual variances allowed" if self.cov == "robust" else "equal residual variances assumed"
        names = " and ".join(design.response.name for design in layout.designs)
        bounds = "its bounds" if layout.outcomes == 1 else "their bounds"
        line = "leverage-weighted line" if layout.weighted else "least-squares line"
        counted = (
            "; assumed: records too few to be counted are hardly more extreme than others (leverage_cap=math.inf assumes nothing)"
            if layout.recentring and layout.counting
            else ""
        )
        return (
            f"coefficients of the population's {line} for {names} clipped to {bounds}, whether or not the relation is linear; "
            f"sampling of records and privacy noise, {variances}, independent records{counted}"
        )

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """Noisy moments in one pass, for a robust covariance one at the noisy lines; before them count, ranges and leverages, if
        planned.
        """
        layout = self._layout(source.schema)
        public: dict[str, Array] = {}
        box, far = None, False
        if layout.recentring:
            self._draw(["count"], plan, source, meter)
            far = self._enough(meter, plan, layout)
            if far:
                self._draw(["ranges"], plan, source, meter)
                cells = meter.drawn("ranges")
                box = private_box(layout.design, cells.decode(), sqrt(cells.variance))
                public["box"] = np.array([box.middle, box.half])
                public |= self._cap(layout, box, source, meter)
                layout = layout if "cap" not in public else layout.far(float(public["cap"][0]))
            (name,) = layout.names("moments", far=far)
            (total,) = source.aggregate(layout.moments_in(box))
            meter.draw(name, total)
        else:
            (name,) = layout.names("moments")
            self._draw([name], plan, source, meter)
        if layout.robust:
            drawn = meter.drawn(name)
            each = layout.decoded(drawn.decode(), sqrt(drawn.variance)).each
            paid = {leaf.name: leaf for leaf in leaves(plan.event) if isinstance(leaf, BudgetItem)}
            noise = float(paid[layout.names("meat", far=far)[0]].noise_sd or nan)
            starts = [self._start(layout, moments, box, noise) for moments in each]
            lines, limits = [line for line, _ in starts], [limit for _, limit in starts]
            public["limits"] = np.array(limits)
            meats = [layout.meat(k, theta, box, limits[k]) for k, theta in enumerate(lines)]
            for name, total in zip(layout.names("meat", far=far), source.aggregate(*meats), strict=True):
                meter.draw(name, total)
            public["theta"] = lines[0] if layout.outcomes == 1 else np.array(lines)
        return public

    @staticmethod
    def _cap(layout: Layout, box: Box, source: Source, meter: Meter) -> dict[str, Array]:
        """R2 in a re-centered box: the user's own stays; else from a noisy histogram, or without one the largest |z|^2 of the public
        bounds.
        """
        if layout.chosen:
            return {}
        cap = largest(layout.design, box)
        if layout.counting:
            (found,) = source.aggregate(layout.leverage.at(Frame.start(box)))
            meter.draw("leverage", found)
            counts = meter.drawn("leverage")
            # the corner of a feature that is not answered is no place to pay for
            cap, wide = largest(layout.design, box, REACH), margin(layout.design, box)
            cap = chosen_cap(layout.leverage.map.edges, counts.decode(), sqrt(counts.variance), cap, wide)
        return {"cap": np.array([cap])}

    @staticmethod
    def _draw(names: list[str], plan: Plan, source: Source, meter: Meter) -> None:
        """Draw planned statistics that need nothing from before, in one pass."""
        for name, total in zip(names, source.aggregate(*map(plan.statistic, names)), strict=True):
            meter.draw(name, total)

    @staticmethod
    def _enough(meter: Meter, plan: Plan, layout: Layout) -> bool:
        """Whether the estimated number of records allows to pay for ranges: mu n >= 30 p."""
        level = plan.guarantee
        assert isinstance(level, GDP)
        return level.mu * float(meter.drawn("count").decode()[0]) >= _ENOUGH * (len(layout.design.terms) + 1)

    @staticmethod
    def _start(layout: Layout, moments: NoisyMoments, box: Box | None, noise: float) -> tuple[Array, float]:
        """The noisy line and a limit of the residuals about it.

        0 and 1 where the line is singular, not finite or absurd: the residuals must stay numbers. noise: the SD of the meat's noise in
        integer steps.
        """
        design = layout.design
        with suppress(np.linalg.LinAlgError):
            fitted = fit(moments, line_of(design, box=box))
            if (np.abs(fitted.theta) <= _FAR).all():
                if layout.chosen:
                    return fitted.theta, 1.0
                matrix, _ = to_units(design, list(range(len(design.terms))), box)
                sd = layout.decoded_meat(np.zeros((0, 0)), noise).sd
                return fitted.theta, residual_limit(fitted, matrix, extent(design, box), layout.cap, sd)
        return np.zeros(len(moments.cross)), 1.0

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> SharedEstimates:
        """The regression table. A question may name a subset of coefficients: `ResultOptions(subset=("age", "educ"))`.

        For several responses the table holds all coefficients, named "y1: age", with tests across responses, and `result["y1"]` is the
        table of one. A subset's covariance assumes equal residual variances in the smaller model, whatever `cov` is: the released meat
        belongs to the full one. Raises `PlanError` for a name that is not a coefficient.
        """
        options = options or ResultOptions()
        options.only(*self.asks)
        return read(self, self._layout(release.plan.declared), release, options)

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The least-squares line of each clipped response; the coefficients of several are named as in the table, "y1: age"."""
        designs = self._layout(CodedFrame.checked(frame).schema).designs
        if len(designs) == 1:
            return least_squares(frame, designs[0])
        lines = {design.response.name: least_squares(frame, design) for design in designs}
        return {f"{own}: {name}": value for own, line in lines.items() for name, value in line.items()}

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Two records that attain the moments' sensitivity: |z|^2 = R2 (no weight below 1) and every |t| = 1.

        Every other feature is mirrored in the second, which makes their rows v nearly orthogonal: the worst under substitution. None
        without a schema or with derived terms.
        """
        layout = None if schema is None else self._layout(schema)
        if layout is None or schema is None:
            return
        terms = layout.design.terms
        responses = [design.response for design in layout.designs]
        names = [term.plain for term in (*terms, *responses)]
        if None in names:
            return
        reach = min(sqrt((min(layout.cap, 1.0 + len(terms)) - 1) / max(len(terms), 1)), 1.0)
        pair: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        for j, name in enumerate(names):
            column = schema[str(name)]
            assert not isinstance(column, Categorical)
            for record, sign in zip(pair, (1, -1), strict=True):
                place = sign if j >= len(terms) else reach * sign ** (j + 1)
                record[str(name)] = (column.low + column.high) / 2 + place * (column.high - column.low) / 2
        yield pair


# What is worth a note.
_ENOUGH_COLUMNS = 0.95


def _one_matrix(own: Mapping[str, Any], shares: Mapping[str, Fraction], schema: Any) -> Iterable[str]:
    """Several responses on the same terms, or one response on several sets of terms."""
    both = {name: both_sides(one) for name, one in own.items()}
    lefts, rights = (list(dict.fromkeys(side[k] for side in both.values())) for k in (0, 1))
    terms = list(dict.fromkeys(part for right in rights for part in right.split(" + ")))
    if min(len(lefts), len(rights)) > 1:
        return
    formula = f"{' + '.join(lefts)} ~ {' + '.join(terms)}"
    first = next(iter(own.values()))
    try:
        joint = _loss(replace(first, formula=formula), schema) / float(sum(shares[name] for name in own))
        ratios = {name: joint * float(shares[name]) / _loss(one, schema) for name, one in own.items()}
    except ConfideError:
        return
    if sum(ratios.values()) / len(ratios) > _ENOUGH_COLUMNS:
        return
    told = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    read = (
        "and result['y'] is the table of one"
        if len(lefts) > 1
        else "smaller models are read by cf.core.ResultOptions(subset=...), whose covariance assumes equal residual variances"
    )
    yield (
        f"{', '.join(own)} are drawn separately; as one analysis, SSP({formula!r}) with the shares of all, the noise variance of the "
        f"moments over that of separate ones would be: {told}; {read}"
    )


def _loss(method: Any, schema: Any) -> float:
    layout = method._layout(schema)
    cap, g2, m = layout.cap, layout.g2, layout.outcomes
    squared = (cap + m * g2) ** 2 if method.products else cap**2 + 2 * m * g2 * cap + m * g2**2
    return float(squared * (1 / g2 + 0.5))
