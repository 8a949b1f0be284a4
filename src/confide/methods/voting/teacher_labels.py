"""Labels of public rows by the noisy votes of teachers, each fitted to a block of the private records (PATE).

Guarantee. Records fall into K blocks, by position after a fresh permutation (substitution) or by a fresh keyed hash (add/remove), so
that one record is in one block (`sums.blocks.record_block`). A teacher is fitted to each, in a separate process, and has one ballot on
each of T public rows. The ballot is for one of C classes, or "failed" on all of them where the teacher raises, is late or predicts
something else. So the K ballots of a query fall on C + 1 options. One record changes what one block says, whatever that is, and moves
one ballot of each query from one option to another. The release is y_i = argmax_j (n_ij + noise) over the C + 1 options. All below is
proved for any number of options and does not use their meaning: "failed" is a winner like another one. Reading it as "no label" comes
after.

- certificate="distance": (epsilon, delta), by generalized propose-test-release. D, the number of ballots whose change may bring the
  loss of all labels above epsilon - e_test, is an integer that one ballot moves by at most 1 (`voting.teacher_budgets`). It passes the
  distance test, which is (e_test, 0), or nothing is released. Where D = 0 it passes with probability at most delta; elsewhere the
  labels are (epsilon - e_test, delta). Together that is (epsilon, delta), as the two deltas belong to different data. The labels' noise
  is drawn apart from the test's.
- certificate="gaussian": mu-GDP with ``mu^2 = 2 T/sigma^2``. Gaussian noise of SD sigma is added to C + 1 counts, of which two move by
  1, and so by sqrt(2) for each query. With ``confident=(threshold, sd)`` a query is answered only where the largest of the C + 1 counts
  plus noise of that SD reaches the threshold. That count moves by at most 1, so ``mu^2 = T (2/sigma^2 + 1/sd^2)``.
- certificate="laplace": epsilon = 2 T/b, Laplace noise of scale b on C + 1 counts, of which two move by 1 (Papernot et al. 2017).

Which one, with which sigma and e_test, follows from public facts alone (`voting.teacher_budgets`).

A query that "failed" wins has no label. Where it wins most of those that were answered the status is "no_information", and none has a
label: the rest is what noise made of the few ballots that are left.

Interval: none. Sources: Papernot et al. 2017, 2018; Redberg, Zhu, Wang 2023, Algorithm 4, replaced: evidence/errata.md.

Labels that teachers' votes gave to public rows.

Teachers: any classifier with fit and predict, each on a separate block of records, and its votes on public rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, log1p, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide._arrays import Array
from confide.core import Allowance, Meter, Method, OpaqueRelease, Plan, Proved, Release, ResultOptions, Source, Total
from confide.core.allowance import EITHER
from confide.core.exact import digest, pack, round_up
from confide.errors import PlanError, PrivacyError
from confide.guarantees import GDP, ApproxDP, Guarantee, PureDP, calibrate_gaussian
from confide.guarantees.validation import is_finite, is_whole
from confide.methods.ptr.classic import StableRelease
from confide.methods.voting.plurality import draw_votes
from confide.methods.voting.teacher_budgets import NOISE_GRID, VoteBudget, budget_of, checked_agreement
from confide.results.base import BaseResult
from confide.results.pages.content import Column
from confide.schema import Categorical, Schema
from confide.sums.blocks.isolated_process import Answers, Room
from confide.sums.blocks.record_block import BY, BlockWork, code_name, fresh_key, not_in_file
from confide.sums.columns import ColumnCodes, chosen_columns


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class VotedLabels(BaseResult):
    """Labels that teachers' votes gave to public rows.

    Parameters
    ----------
    labels : array
        A class for each public row, None where the vote gave none.
    classes : tuple of str
        The public classes.
    """

    labels: NDArray[Any]
    classes: tuple[str, ...]

    family: ClassVar[str] = "labels"
    rows_are: ClassVar[str] = "class"
    rows_called: ClassVar[str] = "classes"

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """How many public rows were given each class."""
        counts = np.array([float(np.sum(self.labels == one)) for one in self.classes])
        return (Column("term", self.classes, "name"), Column("n", counts, "number", head="public rows"))

    def head(self) -> tuple[tuple[str, str], ...]:
        given = sum(one is not None for one in self.labels)
        return (("Labelled", f"{given:,} of {len(self.labels):,} public rows"),)

    def more(self, alpha: float) -> dict[str, Any]:
        return {"given": [None if one is None else str(one) for one in self.labels]}

    def draw(self, ax: Any, alpha: float) -> None:
        draw_votes(ax, self.classes, np.asarray(self.columns(alpha)[1].values), 0.0, "public rows")

    def picture(self, alpha: float) -> str:
        return "Bars: numbers of public rows that were given each class."


def checked_teacher(teacher: Any) -> Any:
    """A classifier, or what a file states of one, which no plan is made with; `PlanError` for anything else."""
    if isinstance(teacher, Mapping) and "live" in teacher:
        return dict(teacher)
    if isinstance(teacher, type) or not all(callable(getattr(teacher, verb, None)) for verb in ("fit", "predict")):
        raise PlanError(
            f"teacher must be a classifier with fit and predict, such as sklearn.linear_model.LogisticRegression(), got {teacher!r}"
        )
    return teacher


def pack_teacher(teacher: Any) -> dict[str, Any]:
    """The name of its class, and its parameters where they have a text form: for readers, as nothing is made from them."""
    live = {"live": code_name(teacher)}
    given = teacher.get_params() if hasattr(teacher, "get_params") else {}
    try:
        pack(given)
    except TypeError:
        return live
    return {**live, "settings": given}


def new_classifier(teacher: Any) -> Any:
    """A new classifier like this one, so that no block leaves anything in it for the next."""
    if hasattr(teacher, "get_params"):
        return type(teacher)(**deepcopy(teacher.get_params(deep=False)))
    return deepcopy(teacher)


@dataclass(frozen=True, eq=False)
class PublicRows:
    """Public rows that teachers vote on, (queries, features), in the order of the features; equal by content.

    >>> PublicRows.of([[0.0, 1.0]]).queries
    1
    """

    rows: Array | None
    queries: int
    digest: str

    @classmethod
    def of(cls, rows: ArrayLike | Mapping[str, Any] | PublicRows) -> PublicRows:
        """From rows, or from what a file states of them; `PlanError` for what is not a finite table."""
        if isinstance(rows, PublicRows):
            return rows
        if isinstance(rows, Mapping) and set(rows) == {"queries", "digest"}:
            return cls(None, int(rows["queries"]), str(rows["digest"]))
        try:
            found = np.array(rows, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise PlanError(
                "public rows must be a table of numbers, (queries, features)", "encode labels as numbers"
            ) from None
        if found.ndim != 2 or not found.size:
            raise PlanError(
                f"public rows must be a table (queries, features) with at least one row, got the shape {found.shape}"
            )
        if not np.isfinite(found).all():
            raise PlanError("public rows must be finite numbers", "drop or fill the rows with missing values")
        found.flags.writeable = False
        return cls(found, len(found), digest(["public rows", list(found.shape), found.tobytes().hex()]))

    def to_dict(self) -> dict[str, Any]:
        return {"queries": self.queries, "digest": self.digest}


@dataclass(frozen=True, eq=False)
class Teaching:
    """What is run on a block: fit the teacher to its records, vote on the public ones.

    Columns of a table: the features, then the label's code. A block without records or with one class alone votes for its class, the
    first one where it is empty. A teacher that raises, or predicts something other than a class, is handled by the runner.
    """

    teacher: Any
    public: Array
    classes: int

    def __call__(self, table: Array, generator: np.random.Generator) -> Array:
        x, y = table[:, :-1], np.rint(table[:, -1]).astype(np.int64)
        present = np.unique(y)
        if len(present) < 2:
            return np.full(len(self.public), float(present[0]) if len(present) else 0.0)
        model = new_classifier(self.teacher)
        if "random_state" in getattr(model, "get_params", dict)():
            model.set_params(random_state=int(generator.integers(1 << 31)))
        votes = np.asarray(model.fit(x, y).predict(self.public), dtype=np.float64)
        if votes.shape != (len(self.public),) or not np.isin(votes, np.arange(self.classes)).all():
            raise ValueError(f"predict gave {np.array2string(votes, threshold=6)}")
        return votes

    def each_class(self, table: Array) -> Array:
        """The table with each class in turn, so that there is something to fit."""
        return np.column_stack([table[:, :-1], np.arange(len(table)) % self.classes])


def tallied(answers: Array, options: int) -> NDArray[np.int64]:
    """Votes (queries, options) from each teacher's ballots (teachers, queries): for a class, or for "failed", the last option."""
    votes = np.zeros((answers.shape[1], options), dtype=np.int64)
    places = np.arange(answers.shape[1])
    for own in np.clip(np.rint(answers), 0, options - 1).astype(np.int64):
        votes[places, own] += 1
    return votes


Records = Mapping[str, Any]

CERTIFICATES = ("auto", "distance", "gaussian", "laplace")
_PROOF = "distance test of teachers' ballots"
# Records of a teacher below which a plan with a public number of records is refused.
_FEWEST = 2
_AGAIN = (
    "cf.voting.Pate(teacher, ...).fit(X, y, public=public), or cf.voting.TeacherLabels(label, teacher, public, ...)"
)
_REFUSED = (
    "the votes were not certified to agree enough for this budget, and no label is released; ask again with certificate='gaussian', a "
    "larger budget, or an expected agreement that is less"
)
_FAILED = (
    "'failed' has the most votes on most public rows: most teachers failed or were late, or the noise is larger than the votes; try the "
    "teacher on schema.sample(n // teachers, seed=1), give n= to the plan, and more seconds=, memory= or budget"
)


@dataclass(frozen=True)
class TeacherLabels(Method):
    """Labels of public rows by the noisy votes of teachers (PATE).

    Each teacher is a classifier that is fitted to one block of the private
    records. The label of a public row is the class with most votes after noise.

    Parameters
    ----------
    label : str
        Categorical column that the teachers learn.
    teacher : classifier
        Object with `fit` and `predict`, of which each block gets a new copy.
    public : array or mapping
        Public rows to label, (queries, features), in the order of `features`.
    teachers : int
        Number of teachers. A few hundred are usual.
    features : tuple of str, optional
        Columns that teachers learn from, categorical ones by the number of the
        level. By default all other columns of the schema.
    certificate : {"auto", "distance", "gaussian", "laplace"}, default "auto"
        How the budget is accounted. "auto" takes the one that gets most labels
        right in public simulations.
    sigma : float, optional
        SD of the noise on counts. By default it is chosen from public facts.
    agreement : "even" or (float, float), default "even"
        Expected distribution of the winner's share, for choosing the noise:
        even, or the parameters of a Beta distribution.
    confident : (float, float), optional
        Threshold and SD of the noise of a test, with certificate="gaussian". A
        query is answered only where the largest count plus noise reaches the
        threshold.
    seconds : float, default 60.0
        Time for all teachers together. It is always used in full, so that the
        running time tells nothing.
    jobs : int, default 1
        Number of teachers that run at the same time.
    memory : int, default 1024
        Memory for each teacher, in MB.
    progress : callable, optional
        Called with the number of waves of teachers that are done, and of all.

    Notes
    -----
    Guarantee: one record changes one teacher, and so moves one ballot of each
    query.

    - "gaussian": Gaussian DP with mu = sqrt(2 T)/sigma for T queries.
    - "laplace": epsilon = 2 T/b, for Laplace noise of scale b.
    - "distance": (epsilon, delta), by generalized propose-test-release.

    The module docstring has the proofs. There is no interval.

    References
    ----------
    Papernot et al. 2017, 2018; Redberg, Zhu, Wang 2023, Algorithm 4, replaced.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(-4, 4, on_missing=0.0), "kind": cf.Categorical(["a", "b"], on_missing="a")})
    >>> class Sign:
    ...     def fit(self, x, y):
    ...         return self
    ...     def predict(self, x):
    ...         return (x[:, 0] > 0).astype(int)
    >>> method = TeacherLabels("kind", Sign(), [[-1.0], [2.0]], teachers=50, certificate="gaussian", seconds=10.0)
    >>> plan = method.plan(schema, cf.GDP(1.0))
    >>> plan.guarantee, round(plan.constants["sigma"], 6)
    (GDP(1.0, relation='add-remove'), 2.0)
    """

    label: str
    teacher: Any
    public: Any
    teachers: int
    features: tuple[str, ...] | None = None
    certificate: str = "auto"
    sigma: float | None = None
    agreement: Any = "even"
    confident: tuple[float, float] | None = None
    seconds: float = 60.0
    jobs: int = 1
    memory: int = 1_024
    progress: Callable[[int, int], None] | None = field(default=None, compare=False, repr=False)

    name: ClassVar[str] = "teacher_labels"
    family: ClassVar[str] = "voting"
    source: ClassVar[str] = (
        "PATE (Papernot et al. 2017, 2018) with a certified budget (Redberg, Zhu, Wang 2023, corrected)"
    )
    native: ClassVar[str] = EITHER
    intervals: ClassVar[str] = "no interval"

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "teacher", checked_teacher(self.teacher))
        put(self, "public", PublicRows.of(self.public))
        put(self, "agreement", checked_agreement(self.agreement))
        if self.features is not None:
            put(self, "features", (self.features,) if isinstance(self.features, str) else tuple(self.features))
        if not is_whole(self.teachers, 2):
            raise PlanError(
                f"teachers must be a whole number of at least 2, got {self.teachers!r}; a few hundred are usual"
            )
        if self.certificate not in CERTIFICATES:
            raise PlanError(f"certificate must be one of {', '.join(CERTIFICATES)}, got {self.certificate!r}")
        if self.sigma is not None and not (is_finite(self.sigma) and self.sigma > 0):
            raise PlanError(
                f"sigma must be a finite number above 0, got {self.sigma!r}", "leave it out and it is chosen"
            )
        if self.confident is not None:
            self._check_confident()

    def _check_confident(self) -> None:
        pair = tuple(self.confident) if isinstance(self.confident, (list, tuple)) else ()
        if self.certificate != "gaussian" or len(pair) != 2 or not all(is_finite(v) for v in pair) or not pair[1] > 0:
            raise PlanError(
                f"confident is (threshold, noise_sd) with certificate='gaussian', got {self.confident!r}, {self.certificate!r}",
                "write confident=(200.0, 150.0), certificate='gaussian'",
            )
        object.__setattr__(self, "confident", (float(pair[0]), float(pair[1])))

    # plan -----------------------------------------------------------------------------------------------------------

    @property
    def least_records(self) -> int:
        """Two for each teacher."""
        return _FEWEST * self.teachers

    def about(self, schema: Any) -> ColumnCodes:
        whole = Schema.of(schema)
        column = whole[self.label]
        if not isinstance(column, Categorical) or len(column.levels) < 2:
            raise PlanError(
                f"the label {self.label!r} must be a categorical column of at least two public levels, which are never learned from "
                "the records",
                "declare it as cf.Categorical([...])",
            )
        features = tuple(one for one in whole.names if one != self.label) if self.features is None else self.features
        chosen_columns(whole, (*features, self.label), "teachers' voting")
        rows = self.public.rows
        if rows is not None and rows.shape[1] != len(features):
            raise PlanError(
                f"public rows must have the {len(features)} columns {', '.join(features[:6])}{', ...' if len(features) > 6 else ''} in "
                f"this order, got {rows.shape[1]}"
            )
        return ColumnCodes(whole, (*features, self.label))

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """One set of labels. The teacher is tried on test data, which are public: its errors show here.

        Raises `PlanError` for public rows with other columns, for more teachers than records, and for a teacher that fails or takes too
        long. Raises it for a plan from a file, too, which holds neither the teacher nor the public rows.
        """
        if isinstance(self.teacher, Mapping):
            raise not_in_file("teacher", self.teacher["live"], _AGAIN)
        if self.public.rows is None:
            raise PlanError("the plan holds a digest of the public rows alone", f"hand them over again: {_AGAIN}")
        record = self.about(schema)
        classes = len(record.schema[self.label].levels)  # type: ignore[union-attr]
        if n is not None and n < self.least_records:
            raise PlanError(
                f"{self.teachers} teachers need at least {self.least_records} records, {_FEWEST} each, and the number given is {n}",
                "take fewer teachers",
            )
        made, event, budget, notes = self._budget(schema, privacy, classes)
        teaching = self._teaching(classes)
        work = self._block_work(teaching)
        mode = "distance" if budget.test else "laplace" if isinstance(event.guarantee, PureDP) else "gaussian"
        facts: dict[str, Any] = {
            "constants": {
                "certificate": mode,
                "sigma": float(budget.sigma),
                "test": float(budget.test),
                "teachers": self.teachers,
                "queries": self.public.queries,
                "classes": list(record.schema[self.label].levels),  # type: ignore[union-attr]
                "waves": work.room.waves(self.teachers),
            },
            "public_inputs": {"public records": self.public.digest},
            "target": f"{self.label} of {self.public.queries} public rows",
            "intervals_for": self.intervals,
            "warnings": notes,
        }
        plan = Plan.of(self, schema, made, event, {"labels": Total(record, nonnegative=True)}, n=n, **facts)
        note = work.rehearse(
            lambda size: teaching.each_class(next(iter(record.practice(size)))),
            n,
            who="the teacher",
            blocks="teachers",
            given=f" of the columns {', '.join(record.columns[:-1])}, in this order, with labels from 0 to {classes - 1}",
            must=(
                f"teacher.fit(X, y).predict(public) must give one of the numbers 0 to {classes - 1}, as in y, for each of the "
                f"{self.public.queries} public rows"
            ),
        )
        settings = {**plan.method.parameters, "teacher": pack_teacher(self.teacher), "public": self.public.to_dict()}
        return replace(plan, method=replace(plan.method, parameters=settings), notes=(*plan.notes, note))

    def _teaching(self, classes: int) -> Teaching:
        """What is run on a block; a plan with public rows was made before."""
        assert self.public.rows is not None
        return Teaching(self.teacher, self.public.rows, classes)

    def _block_work(self, teaching: Teaching) -> BlockWork:
        """Of all teachers: ballots for a class, or for "failed", the option after them."""
        failed = teaching.classes
        answers = Answers((self.public.queries,), 0, failed, failed)
        return BlockWork(teaching, answers, Room(self.seconds, self.memory, self.jobs), self.teachers)

    def _budget(
        self, schema: Any, privacy: Guarantee, classes: int
    ) -> tuple[Allowance | Proved, OpaqueRelease, VoteBudget, tuple[str, ...]]:
        queries = self.public.queries
        if self.certificate == "laplace" or (self.certificate == "auto" and isinstance(privacy, PureDP)):
            pure = Proved.of(
                privacy, self, schema, kinds=(PureDP,), who="Laplace voting", instead="take certificate='gaussian'"
            )
            b = 2 * queries / pure.level.epsilon * (1 + 1e-12)
            if self.sigma is not None and self.sigma < b:
                raise PlanError(
                    f"Laplace noise for {queries} labels at {privacy} needs a scale of at least {b:.4g}, got {self.sigma:g}"
                )
            return pure, OpaqueRelease("labels", pure.level, _PROOF), VoteBudget(self.sigma or b, 0.0, 0.0), ()
        if self.certificate != "gaussian" and isinstance(privacy, ApproxDP):
            proved = Proved.of(privacy, self, schema, who="a certified vote", instead="take certificate='gaussian'")
            level = proved.approx
            budget = budget_of(
                level.epsilon,
                level.delta,
                self.teachers,
                classes,
                queries,
                self.agreement,
                self.sigma,
                self.certificate,
            )
            if budget.test:
                said = (
                    f"in a Gaussian ledger the certified ({level.epsilon:g}, {level.delta:g}) is charged as mu = "
                    f"{PureDP(level.epsilon).to_gdp().mu:.3g}; the plain Gaussian mechanism at this guarantee costs mu = "
                    f"{calibrate_gaussian(level):.3g}"
                )
                return proved, OpaqueRelease("labels", level, _PROOF), budget, (said,)
        elif self.certificate == "distance":
            raise PrivacyError(
                f"a certificate is proved in epsilon and delta, got {privacy}", "write cf.ApproxDP(1.5, 1e-5)"
            )
        allowance = Allowance.of(privacy, self, schema)
        if not isinstance(allowance.level, GDP):
            raise PrivacyError(f"Gaussian noise has no pure guarantee, got {privacy}", "write certificate='laplace'")
        # what the count of a unit's rows leaves, never above its exact share
        mu = allowance.level.mu if allowance.part == 1 else allowance.level.mu * sqrt(allowance.part) * (1 - 1e-12)
        least = self._least_sigma(mu)
        if self.sigma is not None and self.sigma < least:
            raise PlanError(
                f"sigma must be at least {least:.4g} for {queries} labels at {privacy}, got {self.sigma:g}",
                "leave it out, or take fewer public rows",
            )
        if allowance.rows_per_unit != 1:
            raise PrivacyError(
                f"teachers protect single records, got rows_per_unit={allowance.rows_per_unit}; enforce one row: unit=cf.Unit(...)"
            )
        event = OpaqueRelease("labels", replace(allowance.level, mu=mu), _PROOF)
        return allowance, event, VoteBudget(self.sigma or least, 0.0, 0.0), ()

    def _least_sigma(self, mu: float) -> float:
        """The least sigma at which ``mu^2 = T (2/sigma^2 + 1/sd^2)``."""
        each = mu * mu / self.public.queries * (1 - 1e-12)
        if self.confident is not None:
            each -= 1 / self.confident[1] ** 2
            if each <= 0:
                raise PlanError(
                    f"the noise SD of the threshold, {self.confident[1]:g}, needs the whole budget", "take a larger one"
                )
        return sqrt(2 / each)

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """Teachers, votes, the test, labels: numbers of classes from 1 on, the one after them where "failed" wins, 0 for no answer."""
        labels = self.repeated(source, plan, meter.noise("labels"))(1)[0]
        meter.opaque("labels", labels, Fraction(1))
        # where the test passes every query has an answer: only the Gaussian certificate has a threshold
        if plan.constants["certificate"] == "distance" and not labels.any():
            meter.decline()
        return {}

    def repeated(self, source: Source, plan: Plan, noise: Any) -> Callable[[int], NDArray[Any]]:
        """So many releases, (runs, queries), of teachers that were fitted once."""
        facts, classes = plan.constants, len(plan.constants["classes"])
        statistic = plan.statistic("labels")
        answers = self._block_work(self._teaching(classes)).run(
            source,
            statistic.map,  # type: ignore[arg-type]
            fresh_key(noise),
            BY[plan.relation],
            self.progress,
        )
        votes = tallied(answers, classes + 1)

        def drawn(runs: int) -> NDArray[Any]:
            passed = self._passes(votes, plan, noise, runs)
            # drawn in any case
            labels = self._labels(np.tile(votes, (runs, 1)), facts["certificate"], float(facts["sigma"]), noise)
            return np.asarray(labels.reshape(runs, -1) * passed[:, None], dtype=object)

        return drawn

    def _passes(self, votes: NDArray[np.int64], plan: Plan, noise: Any, runs: int) -> NDArray[np.bool_]:
        if plan.constants["certificate"] != "distance":
            return np.ones(runs, dtype=bool)
        level, own = plan.guarantee, VoteBudget(float(plan.constants["sigma"]), float(plan.constants["test"]), 0.0)
        assert isinstance(level, ApproxDP)
        far = own.distance(level.epsilon, level.delta, self.teachers)
        return StableRelease(own.test, level.delta).replies(far(votes), noise, runs)

    def _labels(self, votes: NDArray[np.int64], mode: str, sigma: float, noise: Any) -> NDArray[Any]:
        """Options that win, from 1 on, and 0 below the threshold; votes: (queries, options). From noise on a grid of 2^-10 of a ballot:
        rounding comes after adding."""
        size = votes.size
        exact = np.array([int(v) for v in votes.ravel()], dtype=object) * NOISE_GRID
        if mode == "laplace":
            drawn = noise.grid_laplace(round_up(Fraction(sigma) * NOISE_GRID), size)
        else:
            drawn = noise.grid_gaussian(round_up((Fraction(sigma) * NOISE_GRID) ** 2), size)
        noisy = exact + np.array([int(v) for v in drawn], dtype=object)
        labels = 1 + noisy.reshape(votes.shape).argmax(axis=1)
        if self.confident is not None:
            threshold, sd = self.confident
            drawn = noise.grid_gaussian(round_up((Fraction(sd) * NOISE_GRID) ** 2), len(votes))
            leading = [int(v) * NOISE_GRID + int(z) for v, z in zip(votes.max(axis=1), drawn, strict=True)]
            labels = np.where(np.array(leading, dtype=object) >= ceil(threshold * NOISE_GRID), labels, 0)
        return np.array([int(v) for v in labels], dtype=object)

    # infer ----------------------------------------------------------------------------------------------------------

    def table(self, release: Release, about: Any, options: ResultOptions) -> VotedLabels:
        facts = release.plan.constants
        status, reason = ("valid", "") if release.status == "released" else ("declined", _REFUSED)
        own = np.array([int(v) for v in release["labels"].values], dtype=np.int64)
        flags: tuple[str, ...] = ("no_interval",)
        failed = own > len(facts["classes"])
        lost, answered = int(failed.sum()), int((own > 0).sum())
        own[failed] = 0
        if 2 * lost > answered:
            own[:], status, reason, flags = 0, "no_information", _FAILED, (*flags, "most_blocks_failed")
        shown = [
            ("Certificate", str(facts["certificate"])),
            ("Teachers", f"{facts['teachers']:,}"),
            ("Noise scale" if facts["certificate"] == "laplace" else "Noise sd", f"{facts['sigma']:g}"),
        ]
        if facts["test"]:
            shown.append(("Test epsilon", f"{facts['test']:.4g}"))
        if lost:
            shown.append(
                ("Failed", f"{lost:,} of {len(own):,} public rows have no label, as 'failed' has the most votes")
            )
        return VotedLabels.of(
            release,
            response=self.label,
            labels=np.array([facts["classes"][v - 1] if v else None for v in own], dtype=object),
            classes=tuple(str(v) for v in facts["classes"]),
            flags=flags,
            facts=tuple(shown),
            status=status,
            reason=reason,
        )

    # audit ----------------------------------------------------------------------------------------------------------

    def worst_data(self, plan: Plan, schema: Any) -> Iterator[tuple[list[Records], list[Records]]]:
        """Records that turn a teacher, in neighboring datasets.

        Into an empty block, which votes for the first class, comes a record of the second. Or all records are of one class but for a
        few, which a teacher may follow. In order, records of two kinds differ at one place, so that one block changes whatever the key
        is.
        """
        first, second, k = *({self.label: level} for level in plan.constants["classes"][:2]), self.teachers
        if plan.relation == "add-remove":
            # of m records about K (1 - e^(-m/K)) blocks have one: from none to nearly all, close to each other at a tie
            for m in sorted(
                {0, *(round(-k * log1p(-share)) for share in (0.2, 0.4, 0.46, 0.5, 0.54, 0.6, 0.7, 0.8, 0.9))}
            ):
                for more in (first, second):
                    yield [second] * m, [*[second] * m, more]
        elif plan.n is not None:
            for few in sorted({0, 1, 2, 3, k // 2, k, 2 * k}):
                if few < plan.n:
                    rest = [*[first] * few, *[second] * (plan.n - few - 1)]
                    yield [*rest, second], [*rest, first]
