"""Expected standard errors of a table of protected rows, before it is made: of every method, of a raw sample, and of no protection.

Records for planning are the caller's (older or public ones), or simulated: terms even within their bounds, and a linear response that
leaves half of its variance unexplained. On them the scores of each corrected loss are computed at the fit of the records themselves.
Rows with and without noise are weighted by their probabilities, and the sandwich is that of `cf.local.fit`. Nothing is fitted to noisy
records, so no draw decides. Where the curvature would be less than four of its standard errors above zero, the outlook states that no
interval is expected. Protected levels are told at random as they would be, and each planning record then stands once with each level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan, prod, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from confide._arrays import Array
from confide._helpers import later
from confide.errors import PlanError
from confide.guarantees import ApproxDP, Guarantee
from confide.guarantees.calibration import calibrate_gaussian, calibrate_laplace
from confide.local.estimates import scaled
from confide.local.fits.fitting import FIRM, RECORDS, SMOOTHING, Model, fitted, published_levels, residual_sd
from confide.local.fits.losses import Check, Corrected, Logistic, Loss, Rows, Squared, loss_named
from confide.local.noise_levels import Protection, describe_columns, noised_columns, order_of, rest_of
from confide.schema import Categorical, Schema
from confide.schema.formulas.names import column_named, sides

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")


# Rows for planning: enough for two digits of a standard error, tails of the noise included.
_ROWS = 50_000
_FEW = 2_000  # at least
_SEED = 20261123
_STEP = 1e-4
_WEAK = "* no interval is likely: the curvature is expected within four of its standard errors of zero, or a quantile line has few records"


@dataclass(frozen=True)
class Route:
    """One way to the same estimates. noise: SD over width of a protected column; zeta: chance of a row without noise; errors: by term."""

    name: str
    errors: Mapping[str, float]
    noise: float | None = None
    zeta: float = 0.0
    firm: bool = True
    local: bool = True

    @property
    def size(self) -> float:
        """Its standard errors as one number: the root of the mean square of those that it has."""
        known = [error for error in self.errors.values() if error == error]
        return sqrt(sum(error**2 for error in known) / len(known)) if known else nan


@dataclass(frozen=True)
class Outlook:
    """Expected standard errors for n records: `frame`, one row for each way; `lines()` in words."""

    formula: str
    loss: str
    n: int
    records: str
    ways: tuple[Route, ...]
    privacy: Guarantee | None = None

    @property
    def frame(self) -> pd.DataFrame:
        """Ways by terms, with the noise of each."""
        rows = {
            way.name: {"noise": way.noise, "zeta": way.zeta, **way.errors, "interval likely": way.firm}
            for way in self.ways
        }
        return pd.DataFrame.from_dict(rows, orient="index")

    def lines(self) -> tuple[str, ...]:
        terms = list(dict.fromkeys(name for way in self.ways for name in way.errors))
        head = ["", "noise", *terms]
        cells = [
            [
                way.name + ("" if way.firm else " *"),
                "" if way.noise is None else f"{way.noise:.3g}",
                *(_shown(way.errors.get(name, nan)) for name in terms),
            ]
            for way in self.ways
        ]
        wide = [max(len(row[k]) for row in (head, *cells)) for k in range(len(head))]
        table = [
            "  ".join(
                [row[0].ljust(wide[0]), *(cell.rjust(w) for cell, w in zip(row[1:], wide[1:], strict=True))]
            ).rstrip()
            for row in (head, *cells)
        ]
        asked = "" if self.privacy is None else f" that meet {self.privacy}"
        return (
            f"expected standard errors of {self.formula}, {self.loss} loss, n = {self.n:,}, of ways{asked}; {self.records}",
            *table,
            *self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        own = [way for way in self.ways if way.local and way.noise is not None and way.firm and way.size == way.size]
        said = [_WEAK] * any(not way.firm for way in self.ways)
        raw = next((way for way in self.ways if way.local and way.noise is None), None)
        if raw is None:
            return tuple(said)
        if not own:
            return (*said, f"no protection gives an interval here, and the {raw.name} does")
        best = min(own, key=lambda way: way.size)
        ratio = best.size / raw.size
        said.append(
            f"the {raw.name}, and nothing of the others, promises as much: {best.name} has {ratio:.2g} times its standard errors"
            + ("" if ratio < 1 else ", so that noise on rows is dominated by it")
        )
        return tuple(said)


def _shown(value: float) -> str:
    return "-" if value != value else f"{value:.3g}"


def outlook(
    schema: Schema,
    columns: Sequence[str],
    formula: str,
    n: int,
    *,
    public: Sequence[str],
    level: str,
    loss: str | Loss = "squared",
    tau: float | None = None,
    k: float | None = None,
    privacy: Guarantee | None = None,
    noise: float | None = None,
    levels: Mapping[str, float] | None = None,
    zeta: float = 0.0,
    practice: pd.DataFrame | None = None,
) -> Outlook:
    """What each way to `formula` is expected to give from n records, at one guarantee or at one noise; from public facts alone.

    - levels: the epsilon of each protected column of levels, told alike in all ways but a raw sample.
    - zeta: of the methods that need rows without noise; by default half of the guarantee's delta.
    - practice: records for planning, with the columns of the formula.

    Raises `PlanError`, `PrivacyError`, `NoConversion`.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 2:
        raise PlanError(
            f"n is the number of records to plan for, a whole number of at least 2, got {n!r}", "write n=10_000"
        )
    chosen = loss_named(loss, tau, k)

    randomised = describe_columns(schema, levels or {})
    rest = rest_of(privacy, randomised, level)

    def told(zeta: float) -> Protection:
        numbers = noised_columns(schema, columns, level=level, zeta=zeta, privacy=rest, noise=noise) if columns else {}
        return Protection(numbers, tuple(public), zeta, levels=randomised, order=order_of(schema, public))

    bare = told(0.0)
    records = planning_records(schema, formula, chosen, bare, practice)
    true = _Truth.of(records, bare, formula, chosen, n)
    ways = [true.without(), true.way("SL", "SL", true.noise(bare), _relative(bare))]
    delta = privacy.delta if isinstance(privacy, ApproxDP) else 0.0
    share = (zeta or (delta / 2 if noise is None else 0.0)) if columns else 0.0
    if share:
        with_bare = told(share)
        lam = true.noise(with_bare)
        ways += [
            true.way(f"{method}, {share:.2g} of the rows verbatim", method, lam, _relative(with_bare), share)
            for method in ("RB", "SDR", "SL", "DR")
        ]
    if rest is not None and columns and isinstance(chosen, Squared):
        # an exact correction of these two needs derivatives of every order, which the squared loss alone does not have
        d = len(columns) if level == "record" else 1
        own = true.noise(bare) / _relative(bare)
        if len(columns) > 1:  # of one column it is the symmetric one
            relative = sqrt(2) / calibrate_laplace(rest, releases=d)
            ways.append(true.way("Laplace noise, column by column", "SL", own * relative, relative, draw=_by_column))
        if delta:
            relative = sqrt(d) / calibrate_gaussian(rest)
            ways.append(true.way("Gaussian noise", "SL", own * relative, relative, draw=_gaussian))
    floor = delta or zeta
    if floor:
        ways.append(_raw(ways[0], floor))
    words = (
        "records of planning"
        if practice is not None
        else "terms even in their bounds, a line leaving half of the response"
    )
    return Outlook(formula, chosen.name, n, words, tuple(ways), privacy)


def _raw(without: Route, share: float) -> Route:
    errors = {name: error / sqrt(share) for name, error in without.errors.items()}
    return Route(f"raw sample of {share:.2g} of the rows", errors, None, share)


def _relative(told: Protection) -> float:
    """Noise SD over width of the protected numbers; 0 where levels alone are protected."""
    return max((one.sd / (one.high - one.low) for one in told.columns.values()), default=0.0)


def _symmetric(generator: np.random.Generator, shape: tuple[int, int]) -> Array:
    return np.sqrt(generator.standard_exponential(shape[0]))[:, None] * generator.standard_normal(shape)


def _by_column(generator: np.random.Generator, shape: tuple[int, int]) -> Array:
    return generator.laplace(scale=sqrt(0.5), size=shape)


def _gaussian(generator: np.random.Generator, shape: tuple[int, int]) -> Array:
    return generator.standard_normal(shape)


@dataclass(frozen=True, eq=False)
class _Truth:
    """Records for planning, their own line under the loss, and its curvature. bare: the protection without verbatim rows."""

    records: pd.DataFrame
    formula: str
    bare: Protection
    model: Model
    loss: Loss
    theta: Array
    curvature: Array
    n: int

    @classmethod
    def of(cls, records: pd.DataFrame, bare: Protection, formula: str, loss: Loss, n: int) -> _Truth:
        model = Model.of(records, bare, formula, loss)
        own = scaled(loss, model)
        clean = _clean(model)
        line = np.asarray(np.linalg.lstsq(clean.x, clean.y, rcond=None)[0], dtype=np.float64)
        h = SMOOTHING * residual_sd(clean, line, "naive")
        own = own.at(h)
        done = fitted(own, "naive", clean, h=h)
        if not done.identified:
            raise PlanError(
                "the records for planning have no line of this formula", "give practice= records that have one"
            )
        return cls(records, formula, bare, model, own, done.theta, done.curvature, n)

    def without(self) -> Route:
        """What sampling alone gives."""
        return self.way("without protection", "naive", np.zeros(len(self.theta) + 1), None)

    def noise(self, told: Protection) -> Array:
        """Noise SD of each term in units of the fit, that of the response last."""
        rows = Model.of(self.records.head(_FEW), told, self.formula, self.loss).rows
        return np.append(rows.lam, rows.lam_y)

    def _told(self, generator: np.random.Generator) -> Rows:
        """The records with their levels told at random."""
        if not self.bare.levels:
            return self.model.rows
        drawn = self.records.copy()
        for name, one in self.bare.levels.items():
            anyone = np.array(one.levels, dtype=object)[generator.integers(len(one.levels), size=len(drawn))]
            drawn[name] = np.where(generator.random(len(drawn)) < float(one.keep), drawn[name], anyone)
        return Model.of(drawn, self.bare, self.formula, self.loss).rows

    def way(
        self,
        name: str,
        method: str,
        lam: Array,
        noise: float | None,
        zeta: float = 0.0,
        draw: Callable[[np.random.Generator, tuple[int, int]], Array] = _symmetric,
    ) -> Route:
        """lam: SD of the noise of each term and of the response, in units of the fit. noise: None where nothing is protected."""
        generator = np.random.default_rng(_SEED)
        rows = _clean(self.model) if noise is None else self._told(generator)
        true = replace(rows, lam=lam[:-1], lam_y=float(lam[-1]), zeta=zeta)
        moved = np.repeat(draw(generator, (len(true), len(lam))) * lam, true.copies, axis=0)
        noisy = replace(true, x=true.x + moved[:, :-1], y=true.y + moved[:, -1])
        parts = [(1 - zeta, self._problem(method, noisy, generator))]
        if zeta:
            parts.append((zeta, self._problem(method, true, generator)))
        meat = _mixed([(weight, problem.scores(self.theta)) for weight, problem in parts])
        inverse = np.linalg.inv(self.curvature)
        _, covariance = self.model.in_units(self.theta, inverse @ meat @ inverse / self.n)
        errors = dict(zip(self.model.names, np.sqrt(np.diag(covariance)).tolist(), strict=True))
        if isinstance(self.loss, Check) and self.model.intercept is not None and noise is not None:
            errors[self.model.names[self.model.intercept]] = nan  # its own intercept has another score
        return Route(name, errors, noise, zeta, self._firm(parts), local=noise is not None)

    def _problem(self, method: str, rows: Rows, generator: np.random.Generator) -> Corrected:
        return Corrected(self.loss, method, rows, rows.noised_again(generator))

    def _firm(self, parts: Sequence[tuple[float, Corrected]]) -> bool:
        if isinstance(self.loss, Check) and self.n < RECORDS:
            return False
        values, vectors = np.linalg.eigh(self.curvature)
        step = _STEP * vectors[:, 0]
        bends = [
            (weight, ((one.scores(self.theta + step) - one.scores(self.theta - step)) @ step / (2 * _STEP**2))[:, None])
            for weight, one in parts
        ]
        return bool(values[0] >= FIRM * sqrt(float(_mixed(bends)[0, 0]) / self.n))


def _clean(model: Model) -> Rows:
    """Each record once, as it is."""
    return replace(model.rows.as_told(), lam=np.zeros_like(model.rows.lam), lam_y=0.0, zeta=0.0)


def _mixed(parts: Sequence[tuple[float, Array]]) -> Array:
    """The covariance of rows of which each is of one kind with its chance."""
    mean = sum(weight * rows.mean(axis=0) for weight, rows in parts)
    square = sum(weight * (rows.T @ rows) / len(rows) for weight, rows in parts)
    return np.asarray(square - np.outer(mean, mean), dtype=np.float64)


def planning_records(
    schema: Schema,
    formula: str,
    loss: Loss,
    told: Protection,
    practice: pd.DataFrame | None = None,
    rows: int = _ROWS,
) -> pd.DataFrame:
    """The caller's records within their public bounds, or simulated ones: terms even in their bounds, half of the response unexplained."""
    names = [*told.protected, *told.public]
    if practice is not None:
        missing = [name for name in names if name not in practice.columns]
        if missing:
            raise PlanError(
                f"the records for planning have no column {', '.join(missing)}", "give all that are protected or public"
            )
        own = pd.DataFrame({name: _within(schema, name, practice[name]) for name in names}).dropna()
        if len(own) < 2:
            raise PlanError("practice= holds no two whole records", "give records with all columns of the formula")
        return own.reset_index(drop=True)
    # each record stands once with each combination of levels
    copies = prod(len(one.levels) for one in told.levels.values())
    frame = schema.sample(max(rows // copies, min(rows, _FEW)), seed=_SEED)[names]
    frame = frame.astype(dict.fromkeys(told.levels, object))
    response = column_named(sides(formula)[0], names)
    if response not in names:
        raise PlanError(f"the response {response!r} is neither protected nor public", "name it in columns= or public=")
    if response in told.public and isinstance(schema[response], Categorical):
        raise published_levels(response, loss)
    frame[response] = _leveled(_even(len(frame)), told, response)
    x = Model.of(frame, told, formula, Squared()).rows.as_told().x  # of the terms alone: this loss takes any response
    spread = x.std(axis=0)
    index = (x[:, spread > 0] / spread[spread > 0]).sum(axis=1) / sqrt(max(int((spread > 0).sum()), 1))
    two_sided = response in told.levels
    made = _response(schema, response, Logistic() if two_sided else loss, index)
    frame[response] = _leveled(made, told, response)
    return frame


def _leveled(values: Array, told: Protection, response: str) -> Array | pd.Series[Any]:
    """A response of 0 and 1 as its two levels, where it is protected as such."""
    if response not in told.levels:
        return values
    names = told.levels[response].levels
    return pd.Series(np.where(values == 1, names[1], names[0]), dtype=object)


def _within(schema: Schema, name: str, values: pd.Series[Any]) -> pd.Series[Any]:
    column = schema[name]
    if isinstance(column, Categorical):
        told = values.astype(object)
        known = told.where(told.isin(column.levels))
        return known if column.on_missing == "drop" else known.fillna(column.on_missing)
    known = values.astype(float).clip(column.low, column.high)
    return known if column.on_missing == "drop" else known.fillna(column.on_missing)


def _even(rows: int) -> Array:
    return np.asarray(np.arange(rows) % 2.0, dtype=np.float64)


def _response(schema: Schema, name: str, loss: Loss, index: Array) -> Array:
    generator = np.random.default_rng(_SEED + 1)
    column = schema[name]
    if loss.name == "logistic":
        return (generator.random(len(index)) < 1 / (1 + np.exp(-index))).astype(float)
    if loss.name == "hinge":
        return np.where(index + generator.standard_normal(len(index)) > 0, 1.0, -1.0)
    if isinstance(column, Categorical):
        raise PlanError(f"the response {name!r} has levels", "declare it as a number, or write loss='logistic'")
    if loss.name == "poisson":
        return np.minimum(generator.poisson(np.exp(index / 2)), column.high).astype(float)
    made = (column.low + column.high) / 2 + (column.high - column.low) / 8 * (
        index + generator.standard_normal(len(index))
    )
    return np.asarray(np.clip(made, column.low, column.high), dtype=np.float64)
