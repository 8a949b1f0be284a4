"""What a generalized linear model gives in addition to its coefficients: predicted means and average marginal effects.

The mean slope of a released line, E dm/deta, from its last noisy information: what average marginal effects are made of.

In the last round's coordinates A = sum w h u u', and with v = T^-1 e_0, for which v'u = 1 of every record,

    v'A v = sum w h,   with noise of variance sA^2 |v|^4.

Of the logit and of counts R h is the mean's slope itself, so that R v'A v/n~ is its mean at the line before the last step. Of the probit
it is another function of eta, and no released number holds its mean. How the mean slope changes with the coefficients, E z d2m/deta2, is
taken from the made points (`draw`) at the released coefficients; it carries the estimate over the last step, and the error of
the coefficients into that of the effects. Its own sampling variance, Var h/n, comes from the points, too; that it hangs together with the
coefficients' is ignored. Records with a smaller weight take from sum w h at most max h times their number, of which the histogram
of N^2 gives a bound B n: since 0 <= w <= 1, E dm/deta lies between the mean slope s and s + B max h. So an effect lies between b s and
b s (1 + r), r = B max h / s: the end of an interval that is away from zero is moved by the factor 1 + r, the other not at all.

Of a level, or a column of two values, the effect is the change E d, d = m(eta_to) - m(eta_from), of each record with its column at either
value and all else as it is. With eta_0 the part of eta that is not the column's, d is a function of eta_0 alone, and near to what h weighs:

    d ~ f = sum_G (c_G + c'_G eta_0) h 1_G + c'' eta_0^2 h,     G the values of the column.

The sum of f over the records is a linear function of A, whose noise is known, since 1_G = z'w_G: sum w h 1_G eta_0 = w_G'(Z A Z')theta_0.
What is left, E (d - f), is a mean over the made points, and is assumed to be off by half the SD of d - f over them, which is in the
standard error. The c are those with the least sum of that and of the noise of f. Of counts d is a multiple of h in each G, and nothing is
left: E d is told as well as E exp(eta). Records with a smaller weight take at most B max |d| from it.
All of it is post-processing.

What a logistic regression gives its user beyond a table of coefficients: odds ratios, probabilities, predicted levels.

What a Poisson regression gives its user beyond a table of coefficients: rate ratios and predicted means.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import isnan, nan, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide._helpers import later
from confide._special import expit, ndtr
from confide.errors import NoResult, PlanError
from confide.guarantees.validation import is_number
from confide.methods.regression.glm.draw import made_points
from confide.methods.regression.glm.fisher_families import PROBIT, Counts
from confide.methods.regression.glm.noise_floor import Level, levels_of
from confide.methods.regression.linear_estimates import DesignEstimates
from confide.noise import keyed_generator
from confide.results import check_alpha
from confide.results.inference import simulated_null
from confide.results.pages.content import INTERCEPT, Column

if TYPE_CHECKING:
    import pandas as pd

    from confide.methods.regression.glm.coefficients import FisherFigures
else:
    pd = later("pandas")


# The step of a central difference in eta.
_STEP = 1e-3
# Of itself: what an interval's end is moved by that is not worth a word.
_SAID = 5e-4
# A mean over made points is taken to be off by so many sds of what it is a mean of.
_OFF = 0.5


@dataclass(frozen=True, eq=False)
class MeanSlope:
    """E dm/deta in units of the outcome, its gradient in the coefficients (k,), its own variance.

    lacking: a bound on what records with a smaller weight take from it; less: a bound on their share; change: the `MeanChange` of a
    term by its place.
    """

    value: float
    gradient: Array
    variance: float
    lacking: float
    less: float
    change: Callable[[int], MeanChange]

    @property
    def stretch(self) -> float:
        """By how much of itself the mean slope may be larger; NaN where noise leaves none."""
        return self.lacking / self.value if self.value > 0 else nan

    def stretched(self, low: float, high: float) -> tuple[float, float]:
        """An interval of coefficient x `value` as one of coefficient x E dm/deta."""
        most = 1.0 + self.stretch
        return float(np.minimum(low, low * most)), float(np.maximum(high, high * most))

    def words(self) -> str:
        """What intervals allow for in addition to sampling and noise; "" for a negligible amount."""
        if not self.stretch > _SAID:
            return ""
        return (
            f"effects may be up to {self.stretch:.2%} larger, and the intervals allow for it: up to {self.less:.2%} of the records, with "
            "extreme features, have a smaller weight in the mean slope. Tighter bounds, more records or a larger budget reduce it"
        )


@dataclass(frozen=True, eq=False)
class MeanChange:
    """E m(eta_to) - m(eta_from) in units of the outcome, its gradient in the coefficients (k,), its own variance; said: "to - from".

    lacking: a bound on what records with a smaller weight take from its size.
    """

    said: str
    value: float
    gradient: Array
    variance: float
    lacking: float

    def stretched(self, low: float, high: float) -> tuple[float, float]:
        """An interval of `value` as one of all records."""
        return low - self.lacking * (low < 0), high + self.lacking * (high > 0)


def mean_change(read: FisherFigures, place: int) -> MeanChange:
    """Of the level, or column of two values, that a term is, by its place among the terms; no other term has its column."""
    family, public, last = read.scored_family, read.release.public, read.last
    before, line = np.asarray(public["line"]), np.asarray(public["meat_line"])
    column = read.design.terms[place].columns[0]
    levels = [one for one in levels_of(read.design, read.box) if one.column == column]
    to = next(one for one in levels if dict(one.cell.fixed)[place] == read.design.terms[place].high)
    base = next(one for one in levels if all(at == read.design.terms[j].low for j, at in one.cell.fixed))
    own = [1 + j for j, _ in base.cell.fixed]
    points = _points(read)
    number, records = len(points), max(float(read.release["count"].decode()[0]), 1.0)

    def moved(level: Level) -> Array:
        """The points with the column at a level."""
        found = points.copy()
        middle, half = read.box.arrays
        for j, at in level.cell.fixed:
            found[:, 1 + j] = (at - middle[j]) / half[j]
        return found

    there, here = moved(to), moved(base)
    change = family.mean(there @ line) - family.mean(here @ line)
    in_z = (there.T @ family.slope(there @ line) - here.T @ family.slope(here @ line)) / number
    # what h weighs, of the line of the last round: h 1_G, h 1_G eta_0, h eta_0^2
    rest = before.copy()
    rest[own] = 0.0
    rest[0] -= float((points @ rest).mean())
    slopes, one = family.slope(points @ before), np.eye(len(before))[0]
    pairs = [(level.weights, of) for level in levels for of in (one, rest)] + [(rest, rest)]
    functions = np.column_stack([slopes * (points @ left) * (points @ right) for left, right in pairs])
    back = np.linalg.inv(np.asarray(public["transform"]))
    forms = [np.outer(back @ left, back @ right) for left, right in pairs]
    forms = [(form + form.T) / 2 for form in forms]
    sums = family.scale / records * np.array([float((form * last.gram).sum()) for form in forms])
    flat = family.scale / records * last.sd_gram * np.array([form.ravel() for form in forms])
    middle = functions.mean(axis=0)
    varying, size = functions - middle, np.sqrt((functions**2).mean(axis=0)) + 1e-300
    # in units of each function's size; rounding alone would make combinations of huge ones
    whole = (_OFF**2 * varying.T @ varying / number + flat @ flat.T) / np.outer(size, size) + 1e-12 * np.eye(len(size))
    wanted = _OFF**2 * varying.T @ (change - change.mean()) / number / size
    weights = np.linalg.solve(whole, wanted) / size
    left = change - change.mean() - varying @ weights
    told = float(weights @ sums)
    count_sd = sqrt(read.release["count"].variance)
    variance = (
        _OFF**2 * float((left**2).mean())
        + float(weights @ flat @ flat.T @ weights)
        + (told * count_sd / records) ** 2
        + float(change.var()) / records
    )
    return MeanChange(
        f"{to.name} - {base.name}",
        float(change.mean() - weights @ middle) + told,
        np.asarray(np.linalg.solve(read.units.T, in_z), dtype=np.float64),
        variance,
        float(np.asarray(public["less"])[0]) * float(np.abs(change).max()),
    )


def _points(read: FisherFigures) -> Array:
    """z of made points, (points, k)."""
    moments = np.asarray(read.release.public["moments"])
    return made_points(read.design, read.box, moments, keyed_generator(read.release.drawn_sha256, "mean slope"))


def mean_slope(read: FisherFigures) -> MeanSlope | None:
    """Of a release that is answered; None where its information is not the mean's slope."""
    family = read.scored_family
    if family == PROBIT:
        return None
    public: Any = read.release.public
    records = max(float(read.release["count"].decode()[0]), 1.0)
    v = np.linalg.solve(np.asarray(public["transform"]), np.eye(len(read.last.cross))[0])
    total = family.scale * float(v @ read.last.gram @ v)
    noise = family.scale * read.last.sd_gram * float(v @ v)
    before, line = np.asarray(public["line"]), np.asarray(public["meat_line"])
    points = _points(read)
    eta = points @ line
    slopes = family.slope(eta)
    bend = (family.slope(eta + _STEP) - family.slope(eta - _STEP)) / (2 * _STEP)
    in_z = points.T @ bend / len(points)
    value = total / records + float(in_z @ (line - before))
    count_sd = sqrt(read.release["count"].variance)
    variance = (noise / records) ** 2 + (value * count_sd / records) ** 2 + float(slopes.var()) / records
    less = float(np.asarray(public["less"])[0])
    most = float(slopes.max()) if isinstance(family, Counts) else 0.25
    # coefficients in the data's units are J theta
    gradient = np.asarray(np.linalg.solve(read.units.T, in_z), dtype=np.float64)
    return MeanSlope(value, gradient, variance, less * most, less, partial(mean_change, read))


@dataclass(frozen=True, eq=False, repr=False)
class ModelEstimates(DesignEstimates):
    """Coefficients of a model whose mean is a function of a linear predictor.

    Parameters
    ----------
    effects : callable, optional
        Computes the mean slope, for average marginal effects.
    nobs : float, default nan
        DP number of records; NaN if the release has none.
    log_odds : bool, default False
        Whether coefficients and the intercept are printed, not ratios.
    """

    #: Computes `mean_slope`, for the few tables that are asked for effects.
    effects: Callable[[], MeanSlope | None] | None = None
    nobs: float = nan
    #: Whether coefficients are printed, not ratios.
    log_odds: bool = False

    @property
    def _unpublished(self) -> bool:
        return isnan(self.nobs)

    @cached_property
    def mean_slope(self) -> MeanSlope | None:
        """The mean over the records of the mean outcome's slope in eta; None where the release does not tell it."""
        return None if self.effects is None else self.effects()

    @abstractmethod
    def _mean(self, eta: Array) -> Array:
        """The outcome's mean."""

    @abstractmethod
    def _slope(self, eta: Array) -> Array:
        """Its derivative."""

    #: The exponential of a coefficient, such as "odds_ratio"; "" for a model without ratios.
    _ratio: ClassVar[str] = ""

    @property
    def ratio(self) -> str:
        return "" if self.log_odds else self._ratio.replace("_", " ")

    @property
    def pictures(self) -> tuple[str, ...]:  # type: ignore[override]
        """Ratios, or the coefficients that they are exp of; of a probit the coefficients alone."""
        return ("ratios", "coefficients") if self._ratio else ("coefficients",)

    @property
    def ratio_name(self) -> str:
        """The kind of ratio, where the picture shows it."""
        return "" if self.look.kind == "coefficients" else self._ratio.replace("_", " ")

    def _ratios(self, alpha: float) -> pd.DataFrame:
        """Ratios with their intervals; the exponential of the intercept is not a ratio, and is excluded."""
        found = dict(zip((self._ratio, "ci_low", "ci_high"), self._exponentials(alpha), strict=True))
        return pd.DataFrame(found, index=list(self.names)).drop(index=INTERCEPT, errors="ignore")

    def _exponentials(self, alpha: float) -> tuple[Array, ...]:
        with np.errstate(over="ignore"):
            return tuple(np.exp(own) for own in (self._readable, *self._limits(alpha)))

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """The coefficients, then the ratios with their intervals, NaN for the intercept."""
        own = super().columns(alpha)
        if not self._ratio:
            return own
        ratios = np.array([name != INTERCEPT for name in self.names])
        found = [np.where(ratios, part, np.nan) for part in self._exponentials(alpha)]
        kinds = (("", "estimate"), ("_ci_low", "interval"), ("_ci_high", "interval"))
        return (
            *own,
            *(
                Column(self._ratio + end, part, kind, printed=False)
                for (end, kind), part in zip(kinds, found, strict=True)
            ),
        )

    def printed(self, alpha: float) -> tuple[Column, ...]:
        """Ratios with their intervals and p-values, without the intercept; coefficients with `log_odds`, or without ratios."""
        own = self.columns(alpha)
        if not self.ratio or set(self.names) == {INTERCEPT}:
            return own
        rows = [place for place, name in enumerate(self.names) if name != INTERCEPT]
        held = {one.name: one for one in own}
        wanted = ("term", self._ratio, f"{self._ratio}_ci_low", f"{self._ratio}_ci_high", "p_value", "privacy_share")
        found = (replace(held[name], values=[held[name].values[row] for row in rows], printed=True) for name in wanted)
        return tuple(replace(one, head=self.ratio) if one.name == self._ratio else one for one in found)

    def summary(self, alpha: float | None = None, *, verbose: bool = False, log_odds: bool = False) -> str:
        """The table as text, with ratios, or with coefficients and the intercept.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the level of the intervals.
        verbose : bool, default False
            Whether to print every fact and note of the report.
        log_odds : bool, default False
            Whether to print coefficients, as of the log odds, with the
            intercept. Their exponentials are the ratios.

        Returns
        -------
        str
            Lines of at most 80 columns.
        """
        shown = replace(self, log_odds=True) if log_odds else self
        return super(ModelEstimates, shown).summary(alpha, verbose=verbose)

    @property
    def title(self) -> str:
        """The model of the outcome, with the subject of the ratios."""
        if not self.ratio or self.heading or not self._subject:
            return super().title
        return f"{self.model}: {self._subject}"

    @property
    def _subject(self) -> str:
        """What the ratios are of, such as "odds of smoker = yes"."""
        return ""

    def notes(self) -> tuple[tuple[str, str], ...]:
        """What a ratio is per, for the columns that are numbers."""
        if not self.ratio or not self.has_intervals:
            return ()
        named = [name for name in self.names if name != INTERCEPT and "[T." not in name]
        if not named:
            return ()
        said = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
        return (
            (
                "Compared with",
                f"{'the ratio' if len(named) == 1 else 'ratios'} of {said} {'is' if len(named) == 1 else 'are'} per unit",
            ),
        )

    def more(self, alpha: float) -> dict[str, Any]:
        """`Estimates.more` with the DP number of records."""
        return {**super().more(alpha), "nobs_noisy": self.nobs}

    @property
    def _no_mean_slope(self) -> str:
        return "this release has no information of the kind that they are made of"

    def get_prediction(self, frame: Any, alpha: float = 0.05) -> pd.DataFrame:
        """Mean outcome (of two levels: the second one's probability), standard error and interval at the rows of a public frame: columns as
        in statsmodels.

        mean, mean_se, mean_ci_lower, mean_ci_upper; the ends are those of eta, carried over. The interval is for the mean that the
        model gives there in the population. Without intervals all but the mean is NaN.
        """
        eta, error, half = self._line(frame, alpha)
        mean = self._mean(eta)
        return pd.DataFrame(
            {
                "mean": mean,
                "mean_se": self._slope(eta) * error,
                "mean_ci_lower": self._mean(eta - half),
                "mean_ci_upper": self._mean(eta + half),
            }
        )

    def average_marginal_effects(self, alpha: float = 0.05, kind: str = "change") -> pd.DataFrame:
        """What a column does to the mean outcome, on average over the records, by name: contrast, dy/dx, se, low, high.

        Of a number the mean over the records of d(mean outcome)/d(column), per unit of the column (contrast "dY/dX"). Of a level, and of a
        column of two values, the mean CHANGE of the mean outcome from the reference level, or the lower value, with all other columns of a
        record as they are (contrast "south - north", "1 - 0"), as R and Stata have it; with kind="derivative" the derivative of these, too.
        A column that stands in several terms, or in a transformed one, has no effect of one coefficient, and is NaN; beside coefficients
        that are withheld (`partial`) there is no interval. Intervals: Student's t, sampling and privacy noise of the coefficients and of
        the mean (`results`). Records with extreme features have a smaller weight in it, and an effect may be larger by their part. The
        ends of intervals are that much farther from zero, and `frame.attrs["note"]` says how much.

        Raises `NoResult` where there is no interval, or the release's information is not the mean's slope (the probit),
        `PlanError` for another kind.
        """
        alpha = check_alpha(alpha)
        if kind not in ("change", "derivative"):
            raise PlanError(f'kind must be "change" or "derivative", got {kind!r}', 'write kind="change"')
        if self.design is None or self.mean_slope is None:
            reason = f"the status is {self.status!r}: {self.reason}" if self.reason else self._no_mean_slope
            raise NoResult(f"there are no average marginal effects: {reason}")
        held = Counter(column for term in self.design.terms for column in set(term.columns))
        # what is withheld moves the mean slope by nobody knows how much
        withheld = bool(np.isnan(np.diag(self.covariance)).any())
        rows = []
        for j, name in enumerate(self.names):
            place = self.design.names.index(name) - 1
            if place < 0:
                continue
            if np.isnan(self.estimates[j]) or not self._alone(self.design.terms[place], held):
                rows.append((name, "", *(np.nan,) * 4))
                continue
            if kind == "change" and self.design.terms[place].steps == 2:
                said, value, *ends = self._changed(j, place, alpha)
            else:
                said, value, *ends = self._sloped(j, alpha)
            rows.append((name, said, value, *((nan,) * 3 if withheld else ends)))
        found = pd.DataFrame(rows, columns=["term", "contrast", "effect", "std_err", "ci_low", "ci_high"]).set_index(
            "term"
        )
        found.attrs["note"] = "" if withheld else self.mean_slope.words()
        return found

    def _sloped(self, j: int, alpha: float) -> tuple[str, float, float, float, float]:
        """What is said, the mean derivative of a coefficient's column, its standard error and interval."""
        own, beta = self.mean_slope, self.estimates[j]
        assert own is not None
        # d(beta_j s) = s d beta_j + beta_j ds
        way = beta * own.gradient
        way[j] += own.value
        se, free = self._moved(way, beta**2 * own.variance), self._free(j)
        half = float(simulated_null.quantile(alpha / 2, free)) * se + abs(own.value) * self._biases[j]
        return "dY/dX", beta * own.value, se, *own.stretched(beta * own.value - half, beta * own.value + half)

    def _changed(self, j: int, place: int, alpha: float) -> tuple[str, float, float, float, float]:
        """The same of the mean change of a column of two values, or a level."""
        assert self.mean_slope is not None
        own = self.mean_slope.change(place)
        se = self._moved(own.gradient, own.variance)
        half = (
            float(simulated_null.quantile(alpha / 2, self._free(j))) * se
            + abs(float(own.gradient[j])) * self._biases[j]
        )
        # around a mean slope that is noise there is no interval
        half = half if self.mean_slope.value > 0 else nan
        return own.said, own.value, se, *own.stretched(own.value - half, own.value + half)

    def _moved(self, way: Array, variance: float) -> float:
        """The standard error of what moves with the coefficients in this way, with a variance of its own."""
        kept = np.nan_to_num(self.covariance)
        return sqrt(max(float(way @ kept @ way), 0.0) + variance)

    def _free(self, j: int) -> Any:
        return self.df if np.ndim(self.df) == 0 else np.asarray(self.df)[j]

    @property
    def _biases(self) -> Array:
        return np.zeros(len(self.names)) if self.bias is None else np.nan_to_num(self.bias)

    def _alone(self, term: Any, held: Counter[str]) -> bool:
        """Whether a term is a column, or a level of one that stands in no other kind of term."""
        levels = [one for one in self.design.terms if one.columns == term.columns] if self.design else []
        simple = term.plain is not None or (term.binary and len(term.parts) == 1)
        return (
            simple
            and len(term.columns) == 1
            and held[term.columns[0]] == len(levels)
            and (len(levels) == 1 or all(one.binary for one in levels))
        )


@dataclass(frozen=True, eq=False, repr=False)
class LogisticEstimates(ModelEstimates):
    """Coefficients of a logistic regression, with odds ratios.

    A coefficient is the change of the log odds of the second level per unit of
    the column; its exponential is an odds ratio. With link "probit" it is the
    change of the normal quantile of the probability, without odds ratios.

    Parameters
    ----------
    levels : tuple of (str, str), default ("0", "1")
        Levels of the outcome, the reference level first.
    link : {"logit", "probit"}, default "logit"
        Link of the model.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Categorical(["no", "yes"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> result = cf.logistic_regression("y ~ x", data, privacy=cf.GDP(2.0), ledger=None)
    >>> list(result.odds_ratios())
    ['odds_ratio', 'ci_low', 'ci_high']
    """

    model: ClassVar[str] = "Logistic regression"

    levels: tuple[str, str] = ("0", "1")
    link: str = "logit"

    def more(self, alpha: float) -> dict[str, Any]:
        """`Estimates.more` with the levels and the odds ratios."""
        link = {"link": self.link} if self.link == "probit" else {}
        return {**super().more(alpha), "levels": self.levels, **link}

    @property
    def _ratio(self) -> str:  # type: ignore[override]
        return "" if self.link == "probit" else "odds_ratio"

    @property
    def _subject(self) -> str:
        return f"odds of {self.response} = {self.levels[1]}"

    @property
    def _per(self) -> str:  # type: ignore[override]
        return f" of the {'normal quantile' if self.link == 'probit' else 'log-odds'} per unit of the column"

    def odds_ratios(self, alpha: float = 0.05) -> pd.DataFrame:
        """Odds ratios with their intervals: odds_ratio, ci_low, ci_high. The intercept's is the odds where all terms are 0.

        Raises `NoResult` for the probit, whose coefficients are no log-odds.
        """
        if self.link == "probit":
            raise NoResult(
                "a probit has no odds ratios", 'write link="logit" for a new release, or read get_prediction(frame)'
            )
        return self._ratios(alpha)

    def predict_proba(self, frame: Any) -> pd.DataFrame:
        """Probabilities of the two levels at the rows of a public frame (pandas, or a mapping of arrays): one column for each.

        A row with a missing value gives NaN, and so does, at status "partial", a row that an unanswered coefficient counts in. Raises
        `NoResult` when the release declined, or its status says that the estimates mean nothing ("not_identified").
        """
        share = self._mean(simulated_null.weighted(self._rows(frame), self.estimates))
        return pd.DataFrame({self.levels[0]: 1 - share, self.levels[1]: share})

    def _mean(self, eta: Array) -> Array:
        return np.asarray(ndtr(eta) if self.link == "probit" else expit(eta))

    def _slope(self, eta: Array) -> Array:
        mean = self._mean(eta)
        return PROBIT.slope(eta) if self.link == "probit" else mean * (1 - mean)

    @property
    def _no_mean_slope(self) -> str:
        if self.link == "probit":
            return "what a probit releases is not its mean slope; predictions at given rows have intervals (get_prediction)"
        return super()._no_mean_slope

    def predict(self, frame: Any, threshold: float = 0.5) -> pd.Series[Any]:
        """The level whose probability is larger; threshold: from which probability on it is the second one. None at missing values.

        Raises `NoResult` when the release declined, `PlanError` for a threshold outside (0, 1).
        """
        if not is_number(threshold) or not 0 < threshold < 1:
            raise PlanError(f"threshold must be a number between 0 and 1, got {threshold!r}", "write threshold=0.5")
        share = self.predict_proba(frame)[self.levels[1]].to_numpy()
        labels = np.array([*self.levels, None], dtype=object)
        return pd.Series(labels[np.where(np.isnan(share), 2, share >= threshold).astype(int)], name=self.response)


@dataclass(frozen=True, eq=False, repr=False)
class PoissonEstimates(ModelEstimates):
    """Coefficients of a Poisson regression, with rate ratios.

    A coefficient is the change of the log of the expected count per unit of the
    column; its exponential is a rate ratio.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "visits": cf.Integer(0, 9)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> result = cf.poisson_regression("visits ~ x", data, privacy=cf.GDP(2.0), ledger=None)
    >>> list(result.rate_ratios())
    ['rate_ratio', 'ci_low', 'ci_high']
    """

    model: ClassVar[str] = "Poisson regression"

    _per: ClassVar[str] = " of the log mean per unit of the column"
    _ratio: ClassVar[str] = "rate_ratio"

    @property
    def _subject(self) -> str:
        return f"rate of {self.response}"

    def rate_ratios(self, alpha: float = 0.05) -> pd.DataFrame:
        """Rate ratios with their intervals: rate_ratio, ci_low, ci_high. The intercept's is the mean where all terms are 0.

        Incidence-rate ratios, where a record's count is of one unit of time or of exposure.
        """
        return self._ratios(alpha)

    def predict(self, frame: Any) -> pd.Series[Any]:
        """Mean counts at the rows of a public frame (pandas, or a mapping of arrays); NaN where a value is missing or, at status "partial",
        an unanswered coefficient counts in.

        Raises `NoResult` when the release declined, or its status says that the estimates mean nothing.
        """
        return pd.Series(self._mean(simulated_null.weighted(self._rows(frame), self.estimates)), name=self.response)

    def _mean(self, eta: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(eta))

    def _slope(self, eta: Array) -> Array:
        return self._mean(eta)
