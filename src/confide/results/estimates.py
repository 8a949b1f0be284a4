"""A vector of estimates with its covariance: the base family of results, in statsmodels' vocabulary."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide._lazy import later
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.protocol import STATUSES, Release
from confide.results import student, wald
from confide.results.joint_law import JointLaw
from confide.results.table import html, text
from confide.results.words import WITHOUT_NUMBERS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
else:
    pd = later("pandas")

__all__ = ["Estimates"]

Vector = NDArray[np.float64]

# The statuses at which there are intervals.
_ANSWERED = ("ok", "partial")
# A variance may fall short of its noise part, and a covariance be asymmetric, by the rounding of a few matrix products.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Estimates:
    """Estimates with their covariance, tests and intervals, and the guarantee under which they were released.

    method: name and version; response: what the table is about ("" when nothing fits); names (p,); estimates (p,);
    covariance (p, p), all NaN outside the statuses "ok" and "partial"; df: degrees of freedom of Student's t, one number or (p,), inf for
    the normal distribution; noise_variance (p,): the part of each variance that is privacy noise; bias (p,): a bound on what an estimate
    may be off beyond its standard error, by which half-widths grow (None: none); status and reason ("" when ok); flags; the
    requested and the guarantee of the release, both with their relation; target: what is estimated; covers: what the intervals
    account for; facts: further lines of the head; legend: what they mean, below the table; heading: what the
    title adds, where a line is not the usual one. All units are those of the
    data. Arrays are read-only copies.

    At status "partial" some estimates are answered as at "ok", and the others are NaN with all that belongs to them.
    Outside both every standard error, test and interval is NaN. The estimates are shown at "weak", and at no status that says that they
    mean nothing (`confide.results.words.WITHOUT_NUMBERS`): there `params` and all that is made of it are NaN, and the field `estimates`
    keeps what the noise gave, for studies of a method.
    Raises `PlanError` when the parts do not fit each other. Source: statsmodels' results classes, for the names.

    >>> from confide.guarantees import GDP
    >>> mu = GDP(1.0, relation="add-remove")
    >>> result = Estimates(
    ...     method="mean 1", response="age", names=("mean",), estimates=[41.5], covariance=[[0.25]], df=inf,
    ...     noise_variance=[0.04], status="ok", reason="", flags=(), requested=mu, guarantee=mu, target="mean of age",
    ...     covers="sampling and privacy noise", release_sha256="0" * 64)
    >>> result.bse.tolist(), result.privacy_share.round(2).tolist()
    ([0.5], [0.16])
    >>> result.conf_int().round(2).loc["mean"].tolist()
    [40.52, 42.48]
    """

    method: str
    response: str
    names: tuple[str, ...]
    estimates: Vector
    covariance: Vector
    df: float | Vector
    noise_variance: Vector
    status: str
    reason: str
    flags: tuple[str, ...]
    requested: Guarantee
    guarantee: Guarantee
    target: str
    covers: str
    release_sha256: str
    facts: tuple[tuple[str, str], ...] = ()
    simulated: bool = False
    joint: JointLaw | None = None
    legend: tuple[tuple[str, str], ...] = ()
    bias: Vector | None = None
    heading: str = ""

    # what an estimate is counted in, beyond the units of the response; for the axis of the plot
    _per: ClassVar[str] = ""

    def __post_init__(self) -> None:
        names = _names(self.names)
        put = object.__setattr__  # the one way to set a field of a frozen dataclass
        put(self, "names", names)
        put(self, "flags", tuple(self.flags))
        for field in ("facts", "legend"):
            put(self, field, tuple((str(label), str(value)) for label, value in getattr(self, field)))
        p = len(names)
        put(self, "df", float(self.df) if np.ndim(self.df) == 0 else _array("df", self.df, (p,)))
        if self.bias is not None:
            put(self, "bias", _array("bias", self.bias, (p,)))
        for field, shape in (("estimates", (p,)), ("covariance", (p, p)), ("noise_variance", (p,))):
            put(self, field, _array(field, getattr(self, field), shape))
        _check_status(self)
        _check_guarantees(self)
        _check_variances(self)

    @classmethod
    def of(
        cls,
        release: Release,
        *,
        names: Sequence[str],
        estimates: ArrayLike,
        covariance: ArrayLike,
        noise_variance: ArrayLike,
        response: str = "",
        df: float | ArrayLike = inf,
        status: str = "ok",
        reason: str = "",
        flags: Sequence[str] = (),
        **others: Any,
    ) -> Self:
        """Estimates whose method, guarantees, target and digest are the release's own; `others` are further fields."""
        plan = release.plan
        own: dict[str, Any] = {
            "method": f"{plan.method.name} {plan.method.version}",
            "requested": plan.requested,
            "guarantee": release.charged,
            "target": plan.target,
            "covers": plan.covers,
            "release_sha256": release.sha256,
            "simulated": release.simulated,
            "names": tuple(names),
            "estimates": estimates,
            "covariance": covariance,
            "noise_variance": noise_variance,
            "response": response,
            "df": df,
            "status": status,
            "reason": reason,
            "flags": tuple(flags),
        }
        given = own | others
        if plan.where is not None:
            given["target"] = plan.titled(given["target"])
            given["facts"] = (*given.get("facts", ()), ("Subgroup", plan.where.strip()))
        return cls(**given)

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
        """Estimates over their standard errors, each moved towards zero by the bound on its bias."""
        return self._series(self._tvalues)

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values of "this one is zero", from Student's t with `df` degrees of freedom."""
        return self._series(student.two_sided(self._tvalues, self.df))

    @property
    def privacy_share(self) -> pd.Series[float]:
        """The part of each variance that is privacy noise, in [0, 1]; the rest is sampling. NaN outside status "ok"."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._series(np.clip(self.noise_variance / np.diag(self.covariance), 0.0, 1.0))

    @property
    def has_intervals(self) -> bool:
        """Whether `conf_int` gives numbers."""
        return self.status in _ANSWERED and "no_interval" not in self.flags

    @property
    def normal(self) -> bool:
        """Whether intervals are those of the normal distribution: every df is infinite."""
        return bool(np.isposinf(self.df).all())

    @property
    def fewest_df(self) -> float:
        """The fewest degrees of freedom of any answered estimate; NaN where there is none."""
        known = np.atleast_1d(np.asarray(self.df, dtype=np.float64))
        known = known[~np.isnan(known)]
        return float(known.min()) if len(known) else nan

    @property
    def relation(self) -> str:
        """The neighbouring relation of the guarantee."""
        return str(self.guarantee.relation)

    def cov_params(self) -> pd.DataFrame:
        """The covariance of the estimates, shape (p, p)."""
        return pd.DataFrame(self.covariance.copy(), index=list(self.names), columns=list(self.names))

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Intervals at level 1 - alpha, one for each estimate: columns 0 (low) and 1 (high) as in statsmodels.

        Raises `PlanError` for an alpha that is not between 0 and 1.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            half = student.quantile(check_alpha(alpha) / 2, self.df) * self._bse + self._bias
            return pd.DataFrame({0: self._readable - half, 1: self._readable + half}, index=list(self.names))

    def wald_test(self, r_matrix: str | Sequence[str] | ArrayLike, r_value: ArrayLike = 0) -> wald.WaldTest:
        """Joint test of linear restrictions: F with (rank, df) degrees of freedom; NaN outside status "ok".

        r_matrix: a matrix (q, p) or one row (p,), tested against r_value (zero when left out), or the pair (matrix, value); or text such
        as "age = 0, educ = 0" or "age = 2*educ + 1"; or a list of names, which are tested to be zero together. Redundant
        restrictions count once. Raises `PlanError` for unknown names, wrong shapes and restrictions that contradict.
        Several restrictions are referred to `joint` where a method gives it (`confide.results.joint_law`). Source: Greene, Econometric
        Analysis, 5.4.
        """
        matrix, value = wald.restrictions(self.names, r_matrix, r_value)
        return wald.test(matrix, value, self.estimates, self.covariance, self.df, self.joint, self.bias, self.status)

    def f_test(self, r_matrix: str | Sequence[str] | ArrayLike, r_value: ArrayLike = 0) -> wald.WaldTest:
        """The same as `wald_test`, under statsmodels' other name."""
        return self.wald_test(r_matrix, r_value)

    # --- what is shown -----------------------------------------------------------------------------------------------

    def summary(self, alpha: float = 0.05) -> str:
        """The table as text, at most 100 columns wide, with status, guarantee and what the intervals cover."""
        return text(self, check_alpha(alpha))

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        what = f" of {self.response!r}" if self.response else ""
        kind = ", simulated noise" if self.simulated else ""
        head = f"{type(self).__name__} by {self.method!r}: {len(self.names)} estimates{what}"
        return f"<{head}, status {self.status!r}, {self.guarantee}{kind}>"

    def to_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """The table as a DataFrame: estimate, se, t, p, low, high, privacy_share; one row for each name."""
        limits = self.conf_int(alpha)
        return pd.DataFrame(
            {
                "estimate": self.params,
                "se": self.bse,
                "t": self.tvalues,
                "p": self.pvalues,
                "low": limits[0],
                "high": limits[1],
                "privacy_share": self.privacy_share,
            }
        )

    def to_dict(self, alpha: float = 0.05) -> dict[str, Any]:
        """All that the result holds, in types of strict JSON: what is not finite is None, and so is df = inf."""
        frame = self.to_frame(alpha)
        return {
            "family": "estimates",
            "method": self.method,
            "response": self.response,
            "status": self.status,
            "reason": self.reason,
            "flags": list(self.flags),
            "simulated": self.simulated,
            "names": list(self.names),
            **{str(column): _plain(frame[column].to_numpy()) for column in frame},
            "alpha": float(alpha),
            "distribution": "normal" if self.normal else "t",
            "df": _plain(np.asarray(self.df, dtype=np.float64)),
            "bias": None if self.bias is None else _plain(self.bias),
            "covariance": _plain(self.covariance),
            "noise_variance": _plain(self.noise_variance),
            "facts": [list(fact) for fact in self.facts],
            "legend": [list(line) for line in self.legend],
            "target": self.target,
            "covers": self.covers,
            "relation": self.relation,
            "requested": _stated(self.requested),
            "guarantee": _stated(self.guarantee),
            "release_sha256": self.release_sha256,
        }

    def to_json(self, alpha: float = 0.05) -> str:
        """`to_dict` as strict JSON in ASCII: no NaN tokens, floats with all their digits."""
        return json.dumps(self.to_dict(alpha), allow_nan=False)

    def _repr_html_(self) -> str:
        return html(self, 0.05)

    def plot(self, alpha: float = 0.05, ax: Axes | None = None, *, names: Sequence[str] | None = None) -> Axes:
        """Estimates with their intervals, and inside each the part that sampling alone would give; returns the Axes.

        names: which ones to draw, all but the intercept when left out. Without `ax` a new figure is made that no
        global list of figures holds: `result.plot().figure.savefig("plot.png")`.
        """
        from confide.results.plot import draw  # here, because matplotlib is slow to load and tables do without it

        return draw(self, check_alpha(alpha), ax, names)

    def report(self, path: str | Path, alpha: float = 0.05) -> Path:
        """Write one self-contained HTML file with table, plot and privacy statement in plain words; returns its path.

        Raises `PlanError` when the file cannot be written.
        """
        from confide.results.report import write

        return write(self, Path(path), check_alpha(alpha))

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
    def _bias(self) -> Vector:
        return np.zeros(len(self.names)) if self.bias is None else self.bias

    def _series(self, values: Vector) -> pd.Series[float]:
        return pd.Series(np.array(values), index=list(self.names), dtype="float64")


def check_alpha(alpha: float) -> float:
    """alpha as a float between 0 and 1, or `PlanError`."""
    if isinstance(alpha, (bool, np.bool_)) or not isinstance(alpha, Real) or not 0 < float(alpha) < 1:
        raise PlanError(f"alpha must be a number between 0 and 1, got {alpha!r}; for 95 % intervals write alpha=0.05")
    return float(alpha)


def _names(names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise PlanError(f"names must be a list of texts, got the text {names!r}; write names=({names!r},)")
    found = tuple(names)
    if not found or not all(isinstance(name, str) and name for name in found):
        raise PlanError(f"names must hold at least one text, none of them empty, got {found!r}; write names=('mean',)")
    if len(set(found)) < len(found):
        raise PlanError(f"names must differ from each other, got {found!r}; number them, as in ('mean 1', 'mean 2')")
    return found


def _array(field: str, values: ArrayLike, shape: tuple[int, ...]) -> Vector:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise PlanError(
            f"{field} must hold numbers in the shape {shape}, got {type(values).__name__}; give a NumPy array"
        ) from None
    if array.shape != shape:
        raise PlanError(
            f"{field} must have the shape {shape}, one for each name, got {array.shape}; the names say how many"
        )
    array.flags.writeable = False
    return array


def _check_status(result: Estimates) -> None:
    if result.status not in STATUSES:
        raise PlanError(
            f"status must be one of {', '.join(STATUSES)}, got {result.status!r}; write status='ok' for valid estimates"
        )
    if bool(result.reason) == (result.status == "ok"):
        raise PlanError(
            f"status {result.status!r} came with the reason {result.reason!r}; write reason='' at status 'ok', "
            "and a reason at every other status"
        )


def _check_guarantees(result: Estimates) -> None:
    for field in ("requested", "guarantee"):
        statement = getattr(result, field)
        if not statement.complete:
            raise PlanError(
                f"{field} must have its relation, got {statement}; take it from the plan or the release, "
                "where it has one, or call .resolve('add-remove') on it"
            )


def _check_variances(result: Estimates) -> None:
    points = "no_interval" in result.flags
    if points and result.status == "ok" and not np.isfinite(result.estimates).all():
        raise PlanError("at status 'ok' estimates must be finite; otherwise write status='weak' and its reason")
    if points or result.status not in _ANSWERED:
        if not np.isnan(result.covariance).all():
            raise PlanError(
                f"the covariance must be all NaN at status {result.status!r}{' with no_interval' if points else ''}; "
                "write numpy.full((p, p), numpy.nan): an "
                "interval that is not valid must not be computable"
            )
        return
    answered = _answered(result)
    df = np.broadcast_to(np.asarray(result.df, dtype=np.float64), answered.shape)[answered]
    covariance = result.covariance[np.ix_(answered, answered)]
    estimates, noise, bias = result.estimates[answered], result.noise_variance[answered], result._bias[answered]
    variance = np.diag(covariance)
    if not (np.isfinite(estimates).all() and np.isfinite(covariance).all() and (variance >= 0).all()):
        raise PlanError(
            f"at status {result.status!r} answered estimates and their covariance must be finite and variances not negative; "
            "otherwise write status='weak' and its reason"
        )
    size = np.outer(np.sqrt(variance), np.sqrt(variance))
    if (np.abs(covariance - covariance.T) > _ROUNDING * size + np.finfo(float).tiny).any():
        raise PlanError(
            "the covariance must be symmetric; write covariance=(V + V.T) / 2 when rounding made it otherwise"
        )
    if not ((noise >= 0) & (noise <= (1 + _ROUNDING) * variance)).all():
        raise PlanError(
            "noise_variance is a part of each variance and must lie between 0 and the diagonal of the covariance"
        )
    if np.isnan(df).any() or (df <= 0).any():
        raise PlanError("df must be above 0; for the normal distribution write df=math.inf")
    if not (np.isfinite(bias).all() and (bias >= 0).all()):
        raise PlanError("bias is a bound on what an estimate may be off; it must be finite and not negative")


def _answered(result: Estimates) -> NDArray[np.bool_]:
    """Which estimates are answered: all at "ok", at "partial" those that are not NaN, at least one and not all of them."""
    if result.status == "ok":
        return np.ones(len(result.names), dtype=bool)
    answered = ~np.isnan(result.estimates)
    left = ~answered
    if not answered.any() or not left.any():
        raise PlanError(
            "status 'partial' says that some estimates are answered and others are not; write NaN for those that are not, "
            "or status='ok' or 'weak'"
        )
    if not (np.isnan(result.covariance[left]).all() and np.isnan(result.covariance[:, left]).all()):
        raise PlanError(
            "at status 'partial' the rows and columns of the covariance that belong to unanswered estimates must be NaN: an "
            "interval that is not valid must not be computable"
        )
    return answered


def _stated(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee to the bit (`to_dict`), as text, and its levels as decimal numbers."""
    levels = {name: getattr(guarantee, name) for name in guarantee.numbers()}
    numbers = {
        name: list(level) if isinstance(level, tuple) else level
        for name, level in levels.items()
        if isinstance(level, (float, tuple))
    }
    return {**guarantee.to_dict(), "text": str(guarantee), "numbers": numbers}


def _plain(values: NDArray[np.float64] | np.float64) -> Any:
    """Nested lists of floats, None where a number is not finite."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim:
        return [_plain(part) for part in array]
    number = float(array)
    return number if isfinite(number) else None
