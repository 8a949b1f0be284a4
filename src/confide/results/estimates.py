"""A vector of estimates with its covariance: the base family of results, in statsmodels' vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf, isinf, nan
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide._helpers import later
from confide.errors import PlanError
from confide.results.base import BaseResult
from confide.results.inference import simulated_null, wald
from confide.results.inference.simulated_null import JointLaw
from confide.results.pages.content import ANSWERED, INTERCEPT, WITHOUT_NUMBERS, Column, check_alpha
from confide.results.pages.table import marked, noise_share, pvalue

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")


Vector = NDArray[np.float64]

_JOINT = (
    "the test that every coefficient except the intercept is zero. Compare nested models by tests of this kind (wald_test), because "
    "log-likelihoods, AIC and BIC are not published"
)

# Rows of a covariance that are compared with columns at once.
_STRIP = 128

# Beyond the ends of the 95 % interval, whose noise share is told.
_TAIL = 0.025

# A variance may fall short of its noise part, and a covariance be asymmetric, by the rounding of a few matrix products.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Estimates(BaseResult):
    """Estimates with their covariance, tests, intervals and guarantee.

    At status "partial" some estimates are as at "valid", and the others are NaN
    with all that belongs to them. At other statuses every standard error, test
    and interval is NaN. Estimates are shown at "imprecise". At a status without
    numbers, such as "not_identified", `params` is NaN, and the field
    `estimates` keeps the noisy numbers for studies of a method.

    Parameters
    ----------
    df : float or array of float, default inf
        Degrees of freedom of Student's t; inf for the normal distribution.
    noise_variance : array of float
        Part of each variance that is privacy noise, with its allowances.
    joint : JointLaw, optional
        Distribution of tests of several estimates at once.
    bias : array of float, optional
        Bound on the bias of each estimate, by which its interval is wider.
    sampling_df : float or array of float, optional
        Degrees of freedom without privacy noise. Left out, those of `df`.

    Raises
    ------
    PlanError
        The parts do not agree with each other.

    Examples
    --------
    >>> from confide.guarantees import GDP
    >>> mu = GDP(1.0, relation="add-remove")
    >>> result = Estimates(
    ...     method="mean 1", response="age", names=("mean",),
    ...     estimates=[41.5], covariance=[[0.25]], df=inf,
    ...     noise_variance=[0.04], requested=mu, guarantee=mu,
    ...     target="mean of age", intervals_for="sampling and privacy noise",
    ...     release_sha256="0" * 64)
    >>> result.bse.tolist(), result.privacy_share.round(2).tolist()
    ([0.5], [0.16])
    >>> result.conf_int().round(2).loc["mean"].tolist()
    [40.52, 42.48]
    """

    names: tuple[str, ...]
    estimates: Vector
    covariance: Vector = field(default_factory=lambda: np.array(nan))
    df: float | Vector = inf
    noise_variance: Vector = field(default_factory=lambda: np.array(nan))
    joint: JointLaw | None = None
    bias: Vector | None = None
    sampling_df: float | Vector | None = None

    # what an estimate is counted in, beyond the units of the response; for the axis of the plot
    _per: ClassVar[str] = ""
    rows_are: ClassVar[str] = "coefficient"

    def withheld(self, status: str, reason: str) -> Self:
        return replace(self, status=status, reason=reason, covariance=np.array(nan), noise_variance=np.array(nan))

    def __post_init__(self) -> None:
        super().__post_init__()
        names, p = _names(self.names), len(tuple(self.names))
        self._put("names", names)
        for name, given in (("df", self.df), ("sampling_df", self.sampling_df)):
            if given is not None:
                self._put(name, float(given) if np.ndim(given) == 0 else _array(name, given, (p,)))
        if self.bias is not None:
            self._put("bias", _array("bias", self.bias, (p,)))
        self._put("estimates", _array("estimates", self.estimates, (p,)))
        for name, shape in (("covariance", (p, p)), ("noise_variance", (p,))):
            values = getattr(self, name)
            self._put(name, _array(name, np.full(shape, nan) if np.ndim(values) == 0 else values, shape))
        _check_variances(self)
        self._put("flags", marked(self.flags, self.names, self._share))

    @property
    def biased(self) -> bool:
        return self.bias is not None and bool((self.bias > 0).any())

    # --- the vocabulary of statsmodels -------------------------------------------------------------------------------

    @property
    def params(self) -> pd.Series[float]:
        """The estimates, indexed by name; NaN at a status that says that they mean nothing (`WITHOUT_NUMBERS`)."""
        return self._series(self._readable)

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors: sampling and privacy noise together."""
        return self._series(self._bse)

    @property
    def tvalues(self) -> pd.Series[float]:
        """Estimates over their standard errors, each moved toward zero by the bound on its bias."""
        return self._series(self._tvalues)

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values of "this one is zero", from Student's t with `df` degrees of freedom."""
        return self._series(self._pvalues)

    @property
    def privacy_share(self) -> pd.Series[float]:
        """The part of each squared 95% margin of error that is privacy noise, in [0, 1] (`confide.results.base`).

        NaN where there is no interval.
        """
        return self._series(self._share)

    @property
    def normal(self) -> bool:
        """Whether intervals use the normal distribution: every df is infinite."""
        return bool(np.isposinf(self.df).all())

    @property
    def fewest_df(self) -> float:
        """The fewest degrees of freedom of any answered estimate; NaN where there is none."""
        known = np.atleast_1d(np.asarray(self.df, dtype=np.float64))
        known = known[~np.isnan(known)]
        return float(known.min()) if len(known) else nan

    def cov_params(self) -> pd.DataFrame:
        """The covariance of the estimates, shape (p, p)."""
        return pd.DataFrame(self.covariance.copy(), index=list(self.names), columns=list(self.names))

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Intervals at level 1 - alpha, one for each estimate: columns 0 (low) and 1 (high) as in statsmodels.

        Raises `PlanError` for an alpha that is not between 0 and 1.
        """
        return pd.DataFrame(dict(enumerate(self._limits(alpha))), index=list(self.names))

    def wald_test(self, r_matrix: str | Sequence[str] | ArrayLike, r_value: ArrayLike = 0) -> wald.WaldTest:
        """Joint test of linear restrictions: F with (rank, df) degrees of freedom; NaN outside status "valid".

        r_matrix: a matrix (q, p) or one row (p,), tested against r_value, by default zero; or the pair (matrix, value). It may be text,
        such as "age = 0, educ = 0" or "age = 2*educ + 1"; or a list of names, which are jointly tested to be zero. Redundant restrictions
        count once. Raises `PlanError` for unknown names, wrong shapes and contradicting restrictions.
        Several restrictions are referred to `joint` if a method gives it (`confide.results.inference.simulated_null`). Source: Greene,
        Econometric Analysis, 5.4.
        """
        matrix, value = wald.restrictions(self.names, r_matrix, r_value)
        return wald.wald_test(
            matrix, value, self.estimates, self.covariance, self.df, self.joint, self.bias, self.status
        )

    def f_test(self, r_matrix: str | Sequence[str] | ArrayLike, r_value: ArrayLike = 0) -> wald.WaldTest:
        """The same as `wald_test`, under statsmodels' other name."""
        return self.wald_test(r_matrix, r_value)

    # --- what is shown -----------------------------------------------------------------------------------------------

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """One row for each name; the letter of the statistic is z where the distribution is normal."""
        letter, (low, high) = "z" if self.normal else "t", self._limits(alpha)
        df = np.where(np.isnan(self._bse), nan, np.broadcast_to(np.asarray(self.df, dtype=np.float64), len(self.names)))
        return (
            Column("term", self.names, "name"),
            Column("estimate", self._readable),
            Column("std_err", self._bse, "std_err"),
            Column("statistic", self._tvalues, "statistic", head=letter),
            Column("df", df, "number", printed=False),
            Column("p_value", self._pvalues, "p"),
            Column("ci_low", low, "interval"),
            Column("ci_high", high, "interval"),
            Column("privacy_share", self._share, "share"),
        )

    def head(self) -> tuple[tuple[str, str], ...]:
        """The degrees of freedom: one number, or from the fewest to the most."""
        if not self.has_intervals or self.status == "imprecise":
            return ()
        known = np.atleast_1d(np.asarray(self.df, dtype=np.float64))
        known = known[~np.isnan(known)]
        texts = [_df(df) for df in (known.min(), known.max())] if len(known) else []
        return (("Df (Student's t)", " to ".join(dict.fromkeys(texts))),)

    def reported(self) -> tuple[tuple[str, str, str], ...]:
        """The joint test of a regression's slopes, where all are answered; and that no number of records is published, where none is."""
        slopes = [name for name in self.names if name != INTERCEPT]
        facts = []
        if self.status == "valid" and 0 < len(slopes) < len(self.names):
            tested = self.wald_test(slopes)
            known = "" if isinf(tested.df_denom) else f", {_df(tested.df_denom)}"
            said = f"F({tested.df_num}{known}) = {tested.statistic:.4g}, P>F {pvalue(tested.pvalue)}"
            facts.append(("All slopes zero", said, _JOINT))
        if self._unpublished:
            facts.append(("Records", "their number is not published", ""))
        return tuple(facts)

    @property
    def _unpublished(self) -> bool:
        """Whether it is of a number of records that is told nowhere. Override where results hold that number (`nobs`)."""
        return False

    def more(self, alpha: float) -> dict[str, Any]:
        """Entries of the JSON beyond the table."""
        return {
            "distribution": "normal" if self.normal else "t",
            "df": self.df,
            "bias": self.bias,
            "covariance": self.covariance,
            "noise_variance": self.noise_variance,
        }

    @property
    def axis(self) -> str:
        """Differences of what is modeled, where there is an intercept; else coefficients in its units."""
        if self._per.startswith(" of "):
            return f"difference in {self._per.removeprefix(' of the ').removesuffix(' per unit of the column')}"
        if self._per and self.response and INTERCEPT in self.names:
            return f"difference in {self.response}"
        return f"coefficient, in units of {self.response}" if self._per and self.response else super().axis

    # --- inside ------------------------------------------------------------------------------------------------------

    @property
    def _readable(self) -> Vector:
        """The estimates that may be read: none at a status that says that they mean nothing."""
        return np.full(len(self.names), nan) if self.status in WITHOUT_NUMBERS else self.estimates

    @property
    def _bse(self) -> Vector:
        return np.sqrt(np.diag(self.covariance))

    @property
    def _tvalues(self) -> Vector:
        left = np.sign(self.estimates) * np.maximum(np.abs(self.estimates) - self._bias, 0.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.asarray(left / self._bse)

    @property
    def _pvalues(self) -> Vector:
        return np.asarray(simulated_null.two_sided(self._tvalues, self.df), dtype=np.float64)

    def _limits(self, alpha: float) -> tuple[Vector, Vector]:
        """Both ends of the intervals."""
        with np.errstate(over="ignore", invalid="ignore"):
            half = simulated_null.quantile(check_alpha(alpha) / 2, self.df) * self._bse + self._bias
            return self._readable - half, self._readable + half

    @property
    def _share(self) -> Vector:
        variance, sampled = np.diag(self.covariance), self.df if self.sampling_df is None else self.sampling_df
        with np.errstate(over="ignore", invalid="ignore"):
            alone = simulated_null.quantile(_TAIL, sampled) * np.sqrt(np.maximum(variance - self.noise_variance, 0.0))
            return noise_share(simulated_null.quantile(_TAIL, self.df) * self._bse + self._bias, alone)

    @property
    def _bias(self) -> Vector:
        return np.zeros(len(self.names)) if self.bias is None else self.bias

    def _series(self, values: Vector) -> pd.Series[float]:
        return pd.Series(np.array(values), index=list(self.names), dtype="float64")


def _df(df: float) -> str:
    """Degrees of freedom; so many that t is the normal distribution to three digits are not told apart."""
    return "inf (normal)" if df == inf else "> 1000" if df > 1000 else f"{df:.1f}"


def _names(names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise PlanError(f"names must be a list of texts, got the text {names!r}", f"write names=({names!r},)")
    found = tuple(names)
    if not found or not all(isinstance(name, str) and name for name in found):
        raise PlanError(
            f"names must hold at least one text, none of them empty, got {found!r}", "write names=('mean',)"
        )
    if len(set(found)) < len(found):
        raise PlanError(f"names must differ from each other, got {found!r}; number them, as in ('mean 1', 'mean 2')")
    return found


def _array(field: str, values: ArrayLike, shape: tuple[int, ...]) -> Vector:
    if isinstance(values, np.ndarray) and values.shape == shape and _settled(values):
        return values
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise PlanError(
            f"{field} must hold numbers in the shape {shape}, got {type(values).__name__}", "give a NumPy array"
        ) from None
    if array.shape != shape:
        raise PlanError(
            f"{field} must have the shape {shape}, one for each name, got {array.shape}; the names say how many"
        )
    array.flags.writeable = False
    return array


def _settled(values: Vector) -> bool:
    """Whether nobody can change these doubles any more: they need no copy, and a covariance of thousands is large."""
    return values.dtype == np.float64 and values.base is None and not values.flags.writeable


def _check_variances(result: Estimates) -> None:
    points = "no_interval" in result.flags
    if points and result.status == "valid" and not np.isfinite(result.estimates).all():
        raise PlanError("at status 'valid' estimates must be finite; otherwise write status='imprecise' and its reason")
    if points or result.status not in ANSWERED:
        if not np.isnan(result.covariance).all():
            raise PlanError(
                f"the covariance must be all NaN at status {result.status!r}{' with no_interval' if points else ''}",
                "write numpy.full((p, p), numpy.nan): an interval that is not valid must not be computable",
            )
        return
    answered = _answered(result)
    df = np.broadcast_to(np.asarray(result.df, dtype=np.float64), answered.shape)[answered]
    covariance = result.covariance if answered.all() else result.covariance[np.ix_(answered, answered)]
    estimates, noise, bias = result.estimates[answered], result.noise_variance[answered], result._bias[answered]
    variance = np.diag(covariance)
    if not (np.isfinite(estimates).all() and np.isfinite(covariance).all() and (variance >= 0).all()):
        raise PlanError(
            f"at status {result.status!r} answered estimates and their covariance must be finite and variances not negative; "
            "otherwise write status='imprecise' and its reason"
        )
    if not _symmetric(covariance, variance):
        raise PlanError(
            "the covariance must be symmetric", "write covariance=(V + V.T) / 2 when rounding made it otherwise"
        )
    if not ((noise >= 0) & (noise <= (1 + _ROUNDING) * variance)).all():
        raise PlanError(
            "noise_variance is a part of each variance and must lie between 0 and the diagonal of the covariance"
        )
    if np.isnan(df).any() or (df <= 0).any():
        raise PlanError("df must be above 0; for the normal distribution write df=math.inf")
    if not (np.isfinite(bias).all() and (bias >= 0).all()):
        raise PlanError("bias is a bound on what an estimate may be off; it must be finite and not negative")


def _symmetric(covariance: Vector, variance: Vector) -> bool:
    """Up to rounding. Strip by strip first: of thousands of estimates the transpose as a whole is far from the processor."""
    strips = range(0, len(covariance), _STRIP)
    if all(np.array_equal(covariance[k : k + _STRIP], covariance[:, k : k + _STRIP].T) for k in strips):
        return True
    size = np.outer(np.sqrt(variance), np.sqrt(variance))
    return not (np.abs(covariance - covariance.T) > _ROUNDING * size + np.finfo(float).tiny).any()


def _answered(result: Estimates) -> NDArray[np.bool_]:
    """Which estimates are answered: all at "valid", at "partial" those that are not NaN, at least one and not all of them."""
    if result.status == "valid":
        return np.ones(len(result.names), dtype=bool)
    answered = ~np.isnan(result.estimates)
    left = ~answered
    if not answered.any() or not left.any():
        raise PlanError(
            "status 'partial' says that some estimates are answered and others are not",
            "write NaN for those that are not, or status='valid' or 'imprecise'",
        )
    if not (np.isnan(result.covariance[left]).all() and np.isnan(result.covariance[:, left]).all()):
        raise PlanError(
            "at status 'partial' the rows and columns of the covariance that belong to unanswered estimates must be NaN: an "
            "interval that is not valid must not be computable"
        )
    return answered
