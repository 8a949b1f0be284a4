"""Propose-test-release of any estimator: a reply where its safety bound states that one record cannot move it far.

Estimates what the bound's `estimate` computes from the records. Three modes:

- "gdp" (default): a reply with probability Phi(mu_t (gamma - 1)_+ + z_delta) where gamma > 0, and the estimate with noise of SD
  alpha/mu_r. The squares of mu_t and mu_r add up to that of mu. gamma_plan, the safety that is planned on, fixes mu_t
  (`confide.guarantees.mechanisms.ptr`).
- "exact": the best reply probabilities for one (epsilon, delta) and a whole gamma_plan up to 1,000; states (epsilon, delta) alone.
- "adaptive": for a `CertifiedBound`. A tenth of squared mu buys a noisy level L, which is released. It certifies t with L >= t + l
  except with probability delta, and the estimate gets noise for alpha(t). No level is chosen and none is wasted.

Guarantee: substitution, n is public. "gdp": (mu, delta)-Gaussian DP, by the hidden test of `Allowance.test`. Both neighbors safe: two
Gaussian mechanisms. One unsafe: the other replies with probability at most delta, and the shift by one unit is what makes it so. Both
unsafe: never a reply. From an ApproxDP(epsilon, delta) request half of delta is the failure's. "exact": ApproxDP(epsilon, delta), an
exact divergence checked step by step. "adaptive": (mu, delta)-Gaussian DP. The certificate is right with probability at least 1 -
delta, and then the released vectors are mu_r-GDP close; here the deltas add. The estimate is released as rint(2^20 S estimate/alpha),
sensitivity 2^20 + 2 ceil(sqrt(dim)). A bound of the user's own is asserted, and the guarantee lists it among its assumptions.

The estimate is computed after the reply is drawn: running time then follows what is published anyway.

Interval: none. The distribution of the noise is public (`noise_variance`); how the estimate varies between samples is not known here.
Sources: Dwork, Lei 2009; Shen, Tong, Wang 2026; evidence/errata.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import ceil, inf, isfinite, nan, sqrt
from typing import Any, ClassVar, cast

import numpy as np

from confide.core import (
    SAFETY_STEPS,
    Allowance,
    Meter,
    Method,
    Noisy,
    OpaqueRelease,
    Plan,
    Proved,
    Release,
    ResultOptions,
    Source,
    Test,
    threshold,
)
from confide.core.exact import round_up
from confide.errors import PlanError
from confide.guarantees import ApproxDP, Guarantee
from confide.guarantees.mechanisms.ptr import exact_reply
from confide.guarantees.validation import is_count, is_finite
from confide.methods.ptr import classic
from confide.methods.ptr.classic import FAR, FINE, OfTable
from confide.methods.ptr.safety import (
    CertifiedBound,
    SafetyBound,
    asserted,
    bound_from,
    bound_name,
    checked_bound,
    pack_bound,
)
from confide.results import Estimates
from confide.schema import Schema
from confide.sums.blocks.record_block import Collected
from confide.sums.columns import ColumnCodes, chosen_columns

MODES = ("gdp", "exact", "adaptive")
# The certificate's share of mu^2.
_CERTIFICATE = Fraction(1, 10)
_FORECAST = 12


@dataclass(frozen=True)
class SafeRelease(Method):
    """Propose-test-release with a safety bound.

    Estimates what the bound's `estimate` computes from the records. A reply is
    made only where the bound states that one record cannot move the estimate
    far; otherwise the result is "declined".

    Parameters
    ----------
    bound : SafetyBound
        Safety bound of the estimator.
    columns : tuple of str, optional
        Columns that `prepare` gets, in this order. None of them may drop
        records. By default all columns of the schema.
    mode : {"gdp", "exact", "adaptive"}, default "gdp"
        How a reply is decided. With "gdp" the test and the noise are Gaussian.
        With "exact" the reply probabilities are the best for one (epsilon,
        delta). With "adaptive", for a `CertifiedBound`, a noisy level is
        released, so that none has to be chosen.
    gamma_plan : float, optional
        Safety that is planned on, from public facts. Required, except for
        "adaptive".
    beta : float, default 0.001
        Probability that the release declines at the safety that is planned on.
    tried : int, default 0
        Number of pairs of neighbors on which
        `confide.audit.falsify_safety_bound` attacked the bound without success.
        The guarantee states it.

    Notes
    -----
    Guarantee: substitution, n is public. (mu, delta)-Gaussian DP for "gdp" and
    "adaptive"; ApproxDP(epsilon, delta) for "exact". The estimate is released
    as rint(2^20 S estimate/alpha), with sensitivity 2^20 + 2 ceil(sqrt(dim)). A
    bound of the user's own is asserted, and the guarantee lists it among its
    assumptions. The module docstring has the proof.

    References
    ----------
    Dwork, Lei 2009; Shen, Tong, Wang 2026.

    Examples
    --------
    >>> import confide as cf
    >>> from confide.methods.ptr.safety_bounds import OrderStatistic
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1, on_missing="midpoint")})
    >>> method = SafeRelease(OrderStatistic(500, 0.0, 1.0, alpha=0.05), gamma_plan=40)
    >>> data = cf.read(schema.sample(1_000, seed=1), schema)
    >>> noise = cf.noise.SimulatedNoise(1)  # for an example: with 5% of secure draws there is no reply
    >>> release = cf.release(method, data, cf.ApproxDP(1.0, 1e-6), ledger=None, n=1_000, noise=noise)
    >>> method.infer(release).status
    'valid'
    """

    bound: SafetyBound
    columns: tuple[str, ...] | None = None
    mode: str = "gdp"
    gamma_plan: float | None = None
    beta: float = 1e-3
    tried: int = 0

    name: ClassVar[str] = "safe_release"
    family: ClassVar[str] = "ptr"
    source: ClassVar[str] = (
        "propose-test-release with a safety bound (Dwork, Lei 2009; Shen, Tong, Wang 2026), corrected"
    )
    relations: ClassVar[tuple[str, ...]] = ("substitute",)
    needs: ClassVar[frozenset[str]] = frozenset({"fixed_n"})

    def __post_init__(self) -> None:
        put = object.__setattr__
        if isinstance(self.bound, Mapping):
            if "live" not in self.bound:
                put(self, "bound", bound_from(self.bound))
        elif not isinstance(self.bound, SafetyBound):
            checked_bound(self.bound)  # raises
        if self.columns is not None:
            put(self, "columns", (self.columns,) if isinstance(self.columns, str) else tuple(self.columns))
        if self.mode not in MODES:
            raise PlanError(f'mode must be one of {", ".join(MODES)}, got {self.mode!r}; "gdp" is the default')
        if self.mode == "adaptive" and self.gamma_plan is not None:
            raise PlanError('mode="adaptive" plans on no safety', "leave gamma_plan out")
        if self.mode != "adaptive" and self.gamma_plan is None:
            raise PlanError(
                f'mode="{self.mode}" needs gamma_plan, the safety that data of this kind will have: from public facts, such as '
                "(planned statistic - threshold)/lipschitz, never from the records"
            )
        if self.gamma_plan is not None and not (is_finite(self.gamma_plan) and self.gamma_plan > 1):
            raise PlanError(f"gamma_plan must be a finite number above 1, got {self.gamma_plan!r}; from public facts")
        if not (is_finite(self.beta) and 0 < self.beta < 1):
            raise PlanError(f"beta must lie between 0 and 1, got {self.beta!r}; 0.001 is the default")
        if not is_count(self.tried):
            raise PlanError(f"tried must be a whole number of pairs, got {self.tried!r}")

    # plan -----------------------------------------------------------------------------------------------------------

    def about(self, schema: Any) -> ColumnCodes:
        """The columns that `prepare` gets. Raises `PlanError` for one that is not there or may drop records."""
        who = self.name if isinstance(self.bound, Mapping) else bound_name(self.bound)
        return ColumnCodes(schema, chosen_columns(schema, self.columns, who))

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Plan the test and the estimate.

        The bound is tried on test data from the schema, which are public. An
        error of its author shows here; on records, where exceptions must not
        tell anything, the error would become a number.

        Raises
        ------
        PlanError
            The bound or the columns cannot work.
        PrivacyError
            The guarantee has no delta.
        """
        if isinstance(self.bound, Mapping):
            bound_from(self.bound)  # raises: no file holds a live bound
        bound = checked_bound(self.bound, adaptive=self.mode == "adaptive")
        if bound.n is not None and n is not None and bound.n != n:
            raise PlanError(
                f"{bound_name(bound)} rests on n = {bound.n} records, the plan says n = {n}", "give both the same"
            )
        n = bound.n if n is None else n
        record = self.about(schema)
        _rehearse(bound, record, n, adaptive=self.mode == "adaptive")
        build = {"gdp": self._gaussian, "exact": self._exact, "adaptive": self._adaptive}[self.mode]
        allowance, event, statistics, constants, notes = build(bound, record, schema, privacy)
        facts: dict[str, Any] = {
            "constants": {
                "mode": self.mode,
                "dim": int(bound.dim),
                "shape": list(bound.shape or (1.0,) * bound.dim),
                "names": list(bound.names or (f"theta[{j + 1}]" for j in range(bound.dim))),
                **constants,
            },
            "target": f"{bound_name(bound)} of {', '.join(record.columns)}",
            "intervals_for": "no interval: the estimate's sampling law is not known",
            "warnings": notes,
        }
        plan = Plan.of(self, schema, allowance, event, statistics, n=n, **facts)
        settings = {**plan.method.parameters, "bound": pack_bound(bound)}
        return replace(plan, method=replace(plan.method, parameters=settings))

    def _assumed(self, bound: SafetyBound) -> tuple[str, ...]:
        texts = asserted(bound)
        return (*texts, f"attacked on {self.tried:,} pairs of neighbors, not broken") if texts and self.tried else texts

    def _vector(self, bound: SafetyBound, record: ColumnCodes, alpha: float) -> OfTable:
        moves = classic.vector_moves(bound.dim)
        return OfTable(record, lambda table: classic.vector_of(bound, table, alpha), (bound.dim,), moves)

    def _gaussian(self, bound: SafetyBound, record: ColumnCodes, schema: Schema, privacy: Guarantee) -> tuple[Any, ...]:
        allowance = Allowance.of(privacy, self, schema, failure=Fraction(1, 2), assumptions=self._assumed(bound))
        alpha = classic.public_alpha(bound.alpha)
        assert self.gamma_plan is not None
        law = allowance.reply(self.gamma_plan, self.beta)
        share = Fraction(law.share)
        safety = OfTable(record, lambda table: classic.safety_of(bound, table), (1,), SAFETY_STEPS)
        estimate = self._vector(bound, record, alpha)
        event = allowance.test("safety", safety, share, allowance.spend("estimate", estimate, 1 - share))
        facts = {"alpha": alpha, "gamma_plan": law.gamma_plan, "planned_reply": law.planned}
        notes = (
            (
                f"the test takes half of the budget and replies with probability {law.planned:.3g} only at the planned safety "
                f"{law.gamma_plan:g}; plan on safer data (a larger alpha), or ask for a larger budget",
            )
            if law.capped
            else ()
        )
        return allowance, event, {"safety": safety, "estimate": estimate}, facts, notes

    def _exact(self, bound: SafetyBound, record: ColumnCodes, schema: Schema, privacy: Guarantee) -> tuple[Any, ...]:
        proved = Proved.of(
            privacy, self, schema, assumptions=self._assumed(bound), who='mode="exact"', instead='take mode="gdp"'
        )
        if isinstance(self.gamma_plan, bool) or self.gamma_plan != int(cast(float, self.gamma_plan)):
            raise PlanError(f'mode="exact" needs a whole gamma_plan, got {self.gamma_plan!r}')
        law = exact_reply(proved.level.epsilon, proved.approx.delta, int(self.gamma_plan), self.beta)
        alpha = classic.public_alpha(bound.alpha)
        facts = {"alpha": alpha, "gamma_plan": int(self.gamma_plan), "mu": law.mu, "planned_reply": law.table[-1]}
        return (
            proved,
            OpaqueRelease("reply", proved.level, _PROOF),
            {"reply": self._vector(bound, record, alpha)},
            facts,
            (),
        )

    def _adaptive(self, bound: SafetyBound, record: ColumnCodes, schema: Schema, privacy: Guarantee) -> tuple[Any, ...]:
        assert isinstance(bound, CertifiedBound)
        allowance = Allowance.of(privacy, self, schema, failure=Fraction(1, 2), assumptions=self._assumed(bound))
        level = OfTable(record, lambda table: classic.level_of(bound, table), (1,), FINE)
        estimate = self._vector(bound, record, 1.0)
        certificate = allowance.spend("level", level, _CERTIFICATE)
        event = allowance.certify(certificate, allowance.spend("estimate", estimate, 1 - _CERTIFICATE))
        return allowance, event, {"level": level, "estimate": estimate}, {"least": float(bound.least)}, ()

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """The reply, if there is one."""
        statistic = next(iter(plan.statistics.values()))
        assert isinstance(statistic, OfTable)
        (rows,) = source.aggregate(Collected(statistic.map))
        table = statistic.map.table(rows)
        if self.mode == "exact":
            return self._reply_exactly(meter, plan, table)
        if self.mode == "adaptive":
            return self._certified(meter, plan, table)
        replied = meter.test("safety", classic.safety_of(self.bound, table))
        if replied:
            meter.draw("estimate", classic.vector_of(self.bound, table, plan.constants["alpha"]))
        else:
            meter.decline()
        return {}

    def _certified(self, meter: Meter, plan: Plan, table: Any) -> Mapping[str, Any]:
        bound = self.bound
        assert isinstance(bound, CertifiedBound) and isinstance(plan.event, Test)
        spend = plan.spend("level")
        noisy = meter.draw("level", classic.level_of(bound, table))
        # steps of the draw; the certificate is wrong where its noise reaches the threshold
        reached = Fraction(int(noisy.values[0]) - threshold(spend, plan.event.delta)) * spend.step
        t = classic.certificate(bound, int(reached // 1), 0, int(plan.schema["rows_per_unit"]))
        if not t > bound.least:
            meter.decline()
            return {"level": np.array([t])}
        alpha = classic.public_alpha(bound.alpha_at(t))
        meter.draw("estimate", classic.vector_of(bound, table, alpha))
        return {"level": np.array([t]), "alpha": np.array([alpha])}

    def _reply_exactly(self, meter: Meter, plan: Plan, table: Any) -> Mapping[str, Any]:
        stated = plan.guarantee
        assert isinstance(stated, ApproxDP)
        law = exact_reply(stated.epsilon, stated.delta, plan.constants["gamma_plan"], self.beta)
        gamma = Fraction(int(classic.safety_of(self.bound, table)[0]), SAFETY_STEPS)
        chance = Fraction(law.table[min(ceil(gamma), len(law.table) - 1)])
        noise = meter.noise("reply")
        replied = bool(noise.bernoulli(chance, 1)[0])
        # drawn in any case: time and words do not follow the data
        drawn = noise.grid_gaussian(_exact_variance(plan), plan.constants["dim"])
        values = np.zeros(plan.constants["dim"] + 1, dtype=object)
        if replied:
            exact = classic.vector_of(self.bound, table, plan.constants["alpha"])
            values[0], values[1:] = 1, [int(a) + int(b) for a, b in zip(exact, drawn, strict=True)]
        meter.opaque("reply", values, Fraction(1))
        if not replied:
            meter.decline()
        return {}

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> Estimates:
        """The estimate with its noise, or "declined". `PlanError` for any option, because there is none."""
        (options or ResultOptions()).only()
        plan, names = release.plan, tuple(map(str, release.plan.constants["names"]))
        dim, shape = len(names), np.array(plan.constants["shape"], dtype=np.float64)
        replied, cut = release.status == "released", False
        values, variance = np.full(dim, nan), np.full(dim, nan)
        facts = [("Mode", str(plan.constants["mode"]))]
        if "planned_reply" in plan.constants:
            facts.append(
                ("Planned reply", f"{plan.constants['planned_reply']:.4g} at safety {plan.constants['gamma_plan']:g}")
            )
        if "level" in release.public:
            facts.append(("Certified level", f"{float(release.public['level'][0]):.6g}"))
        if replied:
            alpha = float(release.public["alpha"][0]) if "alpha" in release.public else float(plan.constants["alpha"])
            unit = alpha / FINE / shape
            decoded, sd = self._decoded(release, plan)
            values, variance = decoded * unit, (sd * unit) ** 2
            facts.append(("Noise sd", ", ".join(f"{v:.4g}" for v in np.sqrt(variance[:_FORECAST]))))
            cut = bool((np.abs(decoded) >= FAR - 10 * sd).any())
        return Estimates.of(
            release,
            names=names,
            estimates=values,
            noise_variance=variance,
            status="declined" if not replied else "imprecise" if cut else "valid",
            reason=_NO_REPLY if not replied else _CUT if cut else "",
            flags=("no_interval",),
            facts=tuple(facts),
        )

    def _decoded(self, release: Release, plan: Plan) -> tuple[Any, float]:
        """The noisy vector in steps of alpha/2^20, and the SD of the noise."""
        if self.mode == "exact":
            return release["reply"].decode()[1:], sqrt(float(_exact_variance(plan)) + 1 / 12)
        noisy: Noisy = release["estimate"]
        return noisy.decode(), sqrt(noisy.variance)

    def reference(self, frame: Any) -> Mapping[str, float]:
        """None, because the estimator is the user's own and has no interval."""
        raise PlanError(
            f"{self.name} prints no interval, so there is no reference to hold one against",
            "call the estimator of the safety bound on the records themselves",
        )

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """None, because they belong to the bound (`confide.audit.falsify_safety_bound`)."""
        return ()


_NO_REPLY = (
    "the mechanism did not reply: the data were not certified to be insensitive enough; ask again with a larger alpha, a larger budget or "
    "more records"
)
_CUT = (
    "a number is more than 2^32 alphas from 0, where estimates are clipped, so it is not an estimate; measure from a public point "
    "closer to the records, or propose a larger alpha"
)
_PROOF = "exact divergence of each step of the reply's table, in both directions"


_PRACTICE = 200  # practice records, where n is not known


def _rehearse(bound: SafetyBound, record: ColumnCodes, n: int | None, *, adaptive: bool) -> None:
    """Try each step of a bound on test data. `PlanError` where a step raises or returns what it must not.

    An estimate is defined on safe data alone, so several tables are tried until one is safe. Where none is, the estimate stays untried.
    """
    who, size = bound_name(bound), max(n or _PRACTICE, 1)

    def step(name: str, compute: Callable[[], Any]) -> Any:
        try:
            return compute()
        except Exception as error:
            raise fault(name, f"raises {type(error).__name__}: {error}") from None

    def fault(name: str, what: str) -> PlanError:
        return PlanError(
            f"{who}.{name} {what}, on {size} test records of the columns {', '.join(record.columns)} (in this order; public, from the "
            "schema alone). On records this error would be hidden and noise released",
            f"correct {who}.{name}, or name its columns: columns=(...)",
        )

    def number(name: str, compute: Callable[[], Any]) -> float:
        value = step(name, lambda: float(compute()))
        if not value >= 0 and name != "level":
            raise fault(name, f"gives {value}, and must give a number of at least 0")
        if name == "level" and not isfinite(value):
            raise fault(name, f"gives {value}, and must give a finite number")
        return cast(float, value)

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for table in record.practice(size):
            prepared = step("prepare", partial(bound.prepare, table.copy()))
            if adaptive:
                assert isinstance(bound, CertifiedBound)
                number("error", partial(bound.error, prepared))
                level = number("level", partial(bound.level, prepared)) - bound.moves
                safe = level > bound.least
                if safe and not 0 < number("alpha_at", partial(bound.alpha_at, level)) < inf:
                    raise fault("alpha_at", "gives no finite number above 0")
            else:
                safe = number("gamma", partial(bound.gamma, prepared)) > 0
            if safe:
                again = step("prepare", partial(bound.prepare, table.copy()))
                found = np.ravel(step("estimate", partial(_floats, bound, again)))
                if found.shape != (bound.dim,):
                    raise fault("estimate", f"gives {found.size} numbers, and dim is {bound.dim}")
                if not np.isfinite(found).all():
                    raise fault("estimate", "gives a number that is not finite where the data are safe")
                return


def _floats(bound: SafetyBound, prepared: Any) -> Any:
    return np.asarray(bound.estimate(prepared), dtype=np.float64)


def _exact_variance(plan: Plan) -> Fraction:
    moves = classic.vector_moves(plan.constants["dim"])
    return round_up((Fraction(moves) / Fraction(plan.constants["mu"])) ** 2)
