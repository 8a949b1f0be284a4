"""Private selection: several settings of a method, or several methods, are tried on part of the records and the best one is released.

Estimates what the winner estimates. There are K runs, with K drawn from a public distribution before any record is read. Each run draws
a candidate evenly, releases it on the training part and scores it on the validation part: minus the sum of clipped losses, plus
Gaussian noise. The winner's release is the release. The others never leave the meter, and neither does K, because the bound is about
the best of an unknown number of runs. (Given K, the best of many costs far more: with runs of 0.16-GDP, fit for (1, 1e-6), the best and
K together have a delta near 1e-3.) Nothing stops early. Anyone who can time a release learns of K, which no guarantee here covers.

Guarantee: ApproxDP(epsilon, delta), add/remove or substitution, single records, proved as a whole. One run is mu-GDP up to a slack: a
record is in one part only (`selection`), there it meets the candidate's release or the score, each mu-GDP. Bound (b) of
`guarantees.selection.bounds` gives the cost of the best of K runs; mu is the largest at which it meets (epsilon, delta). With three
candidates or fewer, all of them run once and compose where that leaves a larger mu. Candidates whose own guarantee may fail get a tenth
of delta. Under substitution a record may also leave one part and enter the other. So candidates run at mu/2 under add/remove, which is
mu for a record exchanged in training, and scores at sqrt(3)/2 mu, so that both together are mu. (A split by place would leave the
parts' sizes public, but sources have no places.)

Interval: none. The winner was chosen for what its noise and its validation records made of it. Sources: Liu, Talwar 2019; Papernot,
Steinke 2022; Koskela, Redberg, Wang 2024; Redberg, Zhu, Wang 2023. The bound is proved here.

Candidates of a selection as plain values, by registered names; and losses that a user registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from math import log, nan, sqrt
from typing import Any, ClassVar, cast

import numpy as np

from confide import registry
from confide.core import Meter, Method, Noise, OpaqueRelease, Plan, Proved, Release, ResultOptions, Source, Total, seal
from confide.core.plan import method_parameters
from confide.errors import ConfideError, NoConversion, PlanError, PrivacyError
from confide.guarantees import GDP, Guarantee
from confide.guarantees.selection import Base, RunLaw, TruncatedNegativeBinomial, calibrate_selection, run_law
from confide.guarantees.validation import is_finite
from confide.methods.regression.linear_estimates import LinearEstimates
from confide.methods.selection import draw as parts
from confide.methods.selection.draw import SELECTED, packed, stripped, unpacked
from confide.results import Estimates
from confide.schema import ModelMatrix, Schema
from confide.schema.formulas.names import parted, sides
from confide.sums.blocks.record_block import Collected, fresh_key

_losses: dict[str, type[Any]] = {}


def register_loss(loss: type[Any]) -> type[Any]:
    """Register a `RecordLoss` class under its `name`, as a decorator.

    Plans and releases that use the loss can be read only in a process that
    registers it.

    Parameters
    ----------
    loss : type
        The class, with a `name`.

    Returns
    -------
    type
        The class.

    Raises
    ------
    PlanError
        The class has no name, or the name is taken.
    """
    name = getattr(loss, "name", None)
    if not isinstance(name, str) or name in parts.LOSSES or _losses.get(name, loss) is not loss:
        raise PlanError(
            f"a loss needs a name that is not taken, got {name!r}; taken: {', '.join((*parts.LOSSES, *_losses))}"
        )
    _losses[name] = loss
    return loss


def is_registered(loss: type[Any]) -> bool:
    """Whether a class of losses is known."""
    return loss in _losses.values()


def loss_named(name: str) -> type[Any] | None:
    """A registered loss."""
    return _losses.get(name)


def stored(candidate: Any) -> dict[str, Any]:
    """A candidate as plain values: its registered name and its parameters."""
    if isinstance(candidate, Mapping):
        if not isinstance(candidate.get("method"), str):
            raise PlanError(
                "a candidate that is a mapping must name its method",
                "give the method itself: cf.regression.SSP('y ~ x')",
            )
        own = dict(candidate)
    else:
        name = candidate.name if isinstance(candidate, Method) else None
        own = {"method": name, **method_parameters(candidate)}
    if own.get("where") is not None:
        raise PlanError(
            f"a candidate is fitted and scored on the same records, got one with where={own['where']!r}",
            "give where to the selection itself",
        )
    if own["method"] not in registry.known() or own["method"] == "select":
        raise PlanError(
            f"a candidate must be a registered method other than a selection, got {own['method']!r}; there are: "
            f"{', '.join(registry.known())}"
        )
    return own


def needs_delta(method: Method, schema: Schema) -> bool:
    """Whether a method's guarantee may fail: it refuses a level without a delta and takes one with it."""
    try:
        method.plan(schema, GDP(1.0, relation="add-remove"))
    except PrivacyError as error:
        return "needs a delta" in str(error)
    except ConfideError:
        return False
    return False


def label(method: Method) -> str:
    """A candidate with the settings that are not its defaults."""
    given = [
        f"{field.name}={getattr(method, field.name)!r}"
        for field in fields(cast(Any, method))
        if field.init and getattr(method, field.name) != field.default
    ]
    return f"{method.name}({', '.join(given)})"


_PROOF = (
    "the best of a random number of runs, each mu-GDP up to a slack: their trade-off bound, a record "
    "being in the training or in the validation part"
)
_REASON = "the winner was chosen for what its noise and the validation records made of it; an interval needs a separate release"
_NOTHING = "no run gave a reply, or none was drawn; the release costs its guarantee all the same"
# Of delta, for candidates whose own guarantee may fail.
_FAILURE = Fraction(1, 10)
_ALL = "all"
_TIES = Fraction(1 << 80)


@dataclass(frozen=True)
class Select(Method):
    """The best of several candidates, by a noisy score on held-out records.

    Estimates what the winner estimates. There is no interval, because the
    winner was chosen for its noise and its validation records.

    Parameters
    ----------
    candidates : sequence of Method
        Methods with their settings, of one response.
    score : str or RecordLoss, default "squared_error"
        "squared_error" or "absolute_error" for linear regressions, "log_loss"
        for logistic regressions, or a registered `RecordLoss`.
    runs : law, float or "all", optional
        Distribution of the number of runs (`confide.guarantees.selection`), or
        the mean of the geometric one, or "all" for each candidate once. By
        default three runs for each candidate.
    clip : float, optional
        Public bound to which the loss of a record is clipped. By default the
        most that the middle of the response's bounds can lose, and 2 log 2 for
        "log_loss".
    holdout : float, default 0.25
        Share of the records that is held out.

    Notes
    -----
    Guarantee: ApproxDP(epsilon, delta), add/remove or substitution, for single
    records. A record is in one part only, where it meets the candidate's
    release or the score. The module docstring has the proof.

    References
    ----------
    Liu, Talwar 2019; Papernot, Steinke 2022; Koskela, Redberg, Wang 2024;
    Redberg, Zhu, Wang 2023.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> tried = [cf.regression.SSP("y ~ x", leverage_cap=cap) for cap in (1.2, 1.4, 1.6, 2.0)]
    >>> plan = cf.plan(Select(tried), schema, cf.ApproxDP(1.0, 1e-6))
    >>> round(plan.constants["base_mu"], 3), round(plan.constants["chance_drawn"], 3)
    (0.16, 0.8)
    """

    candidates: Sequence[Any]
    score: Any = "squared_error"
    runs: Any = None
    clip: float | None = None
    holdout: float = 0.25

    name: ClassVar[str] = "select"
    example: ClassVar[str] = 'candidates, "squared_error"'
    family: ClassVar[str] = "selection"
    source: ClassVar[str] = (
        "private selection from a random number of runs (Papernot, Steinke 2022), trade-off accounting"
    )
    native: ClassVar[str] = "ApproxDP"
    needs: ClassVar[frozenset[str]] = frozenset({"opaque"})

    def __post_init__(self) -> None:
        put = object.__setattr__
        if isinstance(self.candidates, (str, Mapping)) or not isinstance(self.candidates, Sequence):
            raise PlanError(
                "candidates must be a list of methods",
                "write cf.select([cf.regression.SSP('y ~ x', leverage_cap=cap) for cap in (1.2, 2)], data, privacy=..., ledger=...)",
            )
        put(self, "candidates", tuple(map(stored, self.candidates)))
        if not 2 <= len(self.candidates) <= 1000:
            raise PlanError(
                f"there must be 2 to 1,000 candidates, got {len(self.candidates)}; one alone needs no selection"
            )
        if isinstance(self.runs, RunLaw):
            put(self, "runs", self.runs.to_dict())
        if self.runs not in (None, _ALL) and not isinstance(self.runs, Mapping):
            TruncatedNegativeBinomial(1.0, self.runs)
        if isinstance(self.score, str):
            if self.score not in parts.LOSSES:
                raise PlanError(
                    f"score must be one of {', '.join(parts.LOSSES)} or a registered RecordLoss, got {self.score!r}"
                )
        elif not isinstance(self.score, Mapping):
            kind = type(self.score)
            if not is_registered(kind) or not is_dataclass(self.score):
                raise PlanError(
                    "a loss must be a frozen dataclass that is registered",
                    "write @confide.selection.register_loss above its class",
                )
            put(self, "score", {"loss": kind.name, **method_parameters(self.score)})
        for name, value, most in (("clip", self.clip, 1e300), ("holdout", self.holdout, 0.9)):
            if not (is_finite(value) and 0 < value <= most) and not (name == "clip" and value is None):
                raise PlanError(
                    f"{name} must be a number above 0{' and at most 0.9' if most < 1 else ''}, got {value!r}; it is public"
                )

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Plan the level of a run, the candidates' plans at it, and the distribution of runs. `PlanError` for candidates that cannot be
        scored.
        """
        proved = Proved.of(privacy, self, schema, who="a selection")
        request = proved.approx
        relation = str(request.relation)
        failing = [needs_delta(method, schema) for method in self.methods]
        if any(failing) and relation == "substitute":
            raise PrivacyError(
                f"{self.methods[failing.index(True)].name} has a guarantee that may fail: nothing is proved under substitution",
                'write relation="add-remove"',
            )
        base = self._base(request.epsilon, request.delta, float(_FAILURE) if any(failing) else 0.0)
        inner = [self._inner(i, schema, base.mu, base.slack, relation) for i in range(len(self.methods))]
        assumed = dict.fromkeys(text for plan in inner for text in plan.guarantee.assumptions)
        level = replace(request, assumptions=tuple(dict.fromkeys((*request.assumptions, *assumed))))
        clip, designs = self._clip(schema), self._designs(schema)
        record = parts.CodedRecords(schema, self._columns(schema, inner))
        statistics: dict[str, Any] = {"records": Total(record)}
        if designs:
            null = parts.LineLoss(designs[0], str(self.score), clip, ((0.0,) * (1 + len(designs[0].terms)),))
            statistics["score"] = Total(null, nonnegative=True)
        return Plan.of(
            self,
            schema,
            Proved(proved.requested, level),
            OpaqueRelease("selected", level, _PROOF),
            statistics,
            n=n,
            constants={
                "base_mu": base.mu,
                "base_slack": base.slack,
                "runs": _ALL if base.law is None else base.law.to_dict(),
                "mean_runs": float(len(inner)) if base.law is None else base.law.mean,
                "chance_drawn": base.drawn,
                "clip": clip,
                "holdout": float(self.holdout),
            },
            target=f"the best by {self._score_name} of {len(inner)} candidates, such as {inner[0].method.name}: {inner[0].target}",
            intervals_for=f"no interval: {_REASON}",
            warnings=tuple(dict.fromkeys(text for plan in inner for text in plan.warnings)),
        )

    @property
    def methods(self) -> tuple[Method, ...]:
        """The candidates."""
        return tuple(
            registry.make(one["method"], **{key: value for key, value in one.items() if key != "method"})
            for one in self.candidates
        )

    @property
    def _score_name(self) -> str:
        return str(self.score if isinstance(self.score, str) else self.score["loss"])

    def _loss(self) -> Any:
        if isinstance(self.score, str):
            return self.score
        settings = dict(self.score)
        name = settings.pop("loss", None)
        kind = loss_named(str(name))
        if kind is None:
            raise PlanError(
                f"the loss {name!r} is not registered here",
                "import what brings it, with @confide.selection.register_loss",
            )
        return kind(**settings)

    def _law(self) -> RunLaw | None:
        if self.runs == _ALL:
            return None
        if isinstance(self.runs, Mapping):
            return run_law(self.runs)
        return TruncatedNegativeBinomial(1.0, 3.0 * len(self.candidates) if self.runs is None else float(self.runs))

    def _base(self, epsilon: float, delta: float, slack: float) -> Base:
        return calibrate_selection(
            epsilon, delta, len(self.candidates), self._law(), slack, alone=self.runs is not None
        )

    def _inner(self, i: int, schema: Schema, mu: float, slack: float, relation: str) -> Plan:
        """The plan of one candidate: mu-GDP up to the slack under add/remove; half of mu where records are exchanged."""
        method = self.methods[i]
        level = mu if relation == "add-remove" else mu / 2
        failing = slack if needs_delta(method, schema) else 0.0
        try:
            made = method.plan(schema, GDP(level, failing, relation="add-remove"))
        except NoConversion:
            raise NoConversion(
                f"candidate {i + 1}, {method.name}, states no GDP, and a selection runs each candidate at a level in GDP",
                "take candidates that do, such as Logistic(formula)",
            ) from None
        except ConfideError as error:
            raise type(error)(f"candidate {i + 1}, {method.name}: {error}") from None
        proved = [g for g in made.guarantees if isinstance(g, GDP) and g.mu <= level and g.delta <= failing]
        if not proved or made.relation != "add-remove":
            raise PlanError(
                f"candidate {i + 1}, {method.name}, states no GDP({level:g}, {failing:g}); select among methods that do"
            )
        return made

    def _designs(self, schema: Schema) -> list[ModelMatrix]:
        """The candidates' model matrices, for a named score; none for a loss of the user's."""
        if not isinstance(self.score, str):
            return []
        found = []
        for i, method in enumerate(self.methods):
            design = method._design(schema)
            if design is None:
                raise PlanError(
                    f"candidate {i + 1}, {method.name}, has no linear predictor to score by {self.score}",
                    "give a registered RecordLoss",
                )
            found.append(design[0] if isinstance(design, tuple) else design)
        if len({design.response.name for design in found}) > 1 or any(
            len(parted(sides(one.formula)[0], "+")) > 1 for one in found
        ):
            raise PlanError("candidates must have one response, the same for all; select for each response separately")
        return found

    def _columns(self, schema: Schema, inner: Sequence[Plan]) -> tuple[str, ...]:
        """Everything that a candidate or the score may read, in a fixed order."""
        names = [name for plan in inner for statistic in plan.statistics.values() for name in statistic.map.columns]
        names += [name for design in self._designs(schema) for name in design.columns]
        if not isinstance(self.score, str):
            names += list(self._loss().columns)
        return tuple(sorted(dict.fromkeys(names)))

    def _clip(self, schema: Schema) -> float:
        if not isinstance(self.score, str):
            return float(self._loss().clip)
        if self.clip is not None:
            return float(self.clip)
        response = self._designs(schema)[0].response
        half = (float(response.high) - float(response.low)) / 2
        return {"squared_error": half * half, "absolute_error": half, "log_loss": 2 * log(2)}[self.score]

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """Draw K and the candidates, then read the records once, run every candidate that was drawn, score all, keep the best."""
        schema, facts = source.schema, plan.constants
        mu, slack = float(facts["base_mu"]), float(facts["base_slack"])
        exchanged = plan.relation == "substitute"
        noise = meter.noise("selected")
        chosen = self._drawn(noise, facts["runs"])
        ties: Any = noise.grid_gaussian(_TIES, len(chosen)) if chosen else ()
        secret = fresh_key(noise)
        record = plan.statistic("records").map
        (rows,) = source.aggregate(Collected(record))
        training, validation = (
            parts.Part(schema, record.columns, own) for own in parts.split(rows, float(facts["holdout"]), secret)
        )
        plans = {i: self._inner(i, schema, mu, slack, plan.relation) for i in sorted(set(chosen))}
        methods = self.methods
        runs = [seal(methods[i], training, plans[i], noise) for i in chosen]
        best = self._best(
            chosen, runs, ties, validation, noise, float(facts["clip"]), mu * (sqrt(0.75) if exchanged else 1.0)
        )
        meter.opaque("selected", np.array([-1 if best is None else chosen[best]]), Fraction(1))
        if best is None:
            meter.decline()
            return {}
        return packed(runs[best])

    def _drawn(self, noise: Noise, law: Any) -> list[int]:
        """The candidates of the runs, in their order: K of them, or all once."""
        k = len(self.candidates)
        if law == _ALL:
            return list(range(k))
        count = parts.uniform(noise, run_law(law).weights().weights)
        return [parts.uniform(noise, (1,) * k) for _ in range(count)]

    def _best(
        self,
        chosen: list[int],
        runs: list[Release],
        ties: Any,
        validation: parts.Part,
        noise: Noise,
        clip: float,
        mu: float,
    ) -> int | None:
        """The run with the best noisy score, the larger tie number among equals; None where no run replied. All are scored."""
        methods = self.methods
        results = [methods[i].infer(run) for i, run in zip(chosen, runs, strict=True)]
        # a run without a reply is a public fact of that run: its score is below any other
        replied = [
            run.status == "released" and result.status != "declined" for run, result in zip(runs, results, strict=True)
        ]
        lines = [i for i, ok in enumerate(replied) if ok]
        sums = parts.losses_of(validation, [results[i] for i in lines], self._loss(), clip)
        spread: Any = noise.grid_gaussian(parts.score_noise(mu), len(chosen)) if chosen else ()
        scored = [(int(spread[i]) - total, int(ties[i]), i) for i, total in zip(lines, sums, strict=True)]
        return max(scored)[2] if scored else None

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> Estimates:
        """What the winner estimates, without intervals. `PlanError` for any option, because there is none."""
        (options or ResultOptions()).only()
        schema, facts = release.plan.declared, release.plan.constants
        k = len(self.candidates)
        counts = (
            f"as many as a public distribution gave, {float(facts['mean_runs']):.3g} on average, each of one of the {k} candidates, drawn "
            "with replacement; the number is not released"
            if facts["runs"] != _ALL
            else f"each of the {k} candidates once"
        )
        said = (
            ("Runs", counts),
            ("Chance that a given candidate, such as the best, was run", f"{float(facts['chance_drawn']):.3f}"),
            (
                "Records of a run",
                f"those of its training part, {1 - float(facts['holdout']):.0%} of all but for chance",
            ),
            ("Privacy of each run", f"{float(facts['base_mu']):.4g}-GDP"),
        )
        if release.status != "released":
            return self._nothing(release, schema, said)
        winner = int(release["selected"].values.ravel()[0])
        method = self.methods[winner]
        relation = str(release.plan.relation)
        inner = self._inner(winner, schema, float(facts["base_mu"]), float(facts["base_slack"]), relation)
        found = method.infer(unpacked(release, inner))
        if not isinstance(found, Estimates):
            raise PlanError(
                f"{method.name} gives no table of estimates, so that its intervals cannot be taken off; select among tables"
            )
        return stripped(found, release, self, (("Selected", f"candidate {winner + 1}, {label(method)}"), *said))

    def _nothing(self, release: Release, schema: Schema, said: tuple[tuple[str, str], ...]) -> Estimates:
        designs = self._designs(schema)
        names = designs[0].names if designs else ("estimate",)
        p = len(names)
        return LinearEstimates.of(
            release,
            response=designs[0].response.name if designs else "",
            names=names,
            estimates=np.full(p, nan),
            df=nan,
            status="declined",
            reason=_NOTHING,
            flags=("no_interval", SELECTED),
            facts=said,
            design=designs[0] if designs else None,
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        """None, because the released candidate depends on noise, and a winner has no interval."""
        raise PlanError(
            f"{self.name} prints no interval, so there is no reference to hold one against",
            "ask the candidates, select.methods[0].reference(frame)",
        )

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """The pairs of the first candidate, one of whose records is in training or in validation."""
        return self.methods[0].worst_pairs(schema)
