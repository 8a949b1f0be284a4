"""What was measured of each verb beside the methods: one that reads a release, or runs a mechanism of the user's own.

    confide lab bench verbs

prints evidence/verbs.md and the section "Verbs" of evidence/audit.md. Replications are recorded as those of `confide lab run`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import confide as cf
from confide.audit import Audit, audit, mu_lower_bound
from confide.methods.ptr.feature_votes import MOVES, FeatureVotes
from confide.noise import SecureNoise, SimulatedNoise
from confide.ptr import GeneralizedRelease, RenyiTest
from confide_lab.experiment import Record, run as run_experiment
from confide_lab.experiments import load

OUT = Path("out/lab")
RUNS = int(os.environ.get("CONFIDE_STATE_RUNS", "20000"))
Row = dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """One figure of an experiment. least, most: what is asked of a share, up to three standard errors that it then has."""

    verb: str
    what: str
    experiment: str
    quantity: str
    method: str
    cell: Mapping[str, str]
    reps: int
    least: float | None = None
    most: float | None = None
    beside: str = ""

    @property
    def bar(self) -> tuple[str, float]:
        """What is asked: "at least" or "at most" and the share; ("", 0) where nothing is."""
        if self.least is not None:
            return "at least", self.least
        return ("", 0.0) if self.most is None else ("at most", self.most)


_MODELS = {"block": "nested", "smaller": "right", "n": "2000"}
_TRIAL = {"outcome": "numeric", "effect": "none", "n": "1000", "mu": "0.3"}
_RISK = {"outcome": "two-valued", "effect": "one arm", "n": "5000", "mu": "1.0"}
_LOCAL = {"block": "bounds", "design": "linear, d=3", "bounds": "-1 to 1.5"}
_REGION = {"question": "slopes", "n": "5000", "mu": "0.5"}
_VOTES = {"block": "features", "n": "20000", "epsilon": "2.0"}
_GROUP = {"block": "group", "n": "2000", "share": "0.5"}

MEASURED = (
    Measured(
        "`regression.compare_models`", "F tests at 5% of a smaller model that is right, rejected", "models.comparison",
        "rejected", "least_squares", _MODELS, 200, most=0.05, beside="records",
    ),
    Measured(
        "`regression.compare_models`", "records' AIC within the 95% interval", "models.comparison",
        "aic_held", "least_squares", _MODELS, 200, least=0.95,
    ),
    Measured(
        "`synthesis.treatment_effects`", "tests at 5% that no arm differs, rejected where none does", "synthetic.effects",
        "rejected", "release", _TRIAL, 100, most=0.05, beside="rows",
    ),
    Measured(
        "`synthesis.treatment_effects`", "effects within the 95% interval", "synthetic.effects",
        "held", "release", _TRIAL, 100, least=0.95, beside="rows",
    ),
    Measured(
        "`synthesis.treatment_effects`", "differences of risks within the 95% interval", "synthetic.effects",
        "held", "release", _RISK, 100, least=0.95, beside="records",
    ),
    Measured(
        "`local.fit(bounds=)`", "slopes within the 95% interval, where the bounds contain them", "zil.coverage",
        "slopes", "SL", _LOCAL, 60, least=0.95,
    ),
    Measured(
        "`conf_int(simultaneous=True)`", "all five coefficients within the 95% region", "intervals.regions",
        "together", "posterior", _REGION, 100, least=0.95,
    ),
    Measured(
        "`ptr.select_features`", "replies with the two features that have slopes", "ptr.features",
        "right", "votes", {**_VOTES, "effect": "1.0"}, 40, least=1.0,
    ),
    Measured(
        "`ptr.select_features`", "replies where no feature has a slope", "ptr.features",
        "reply", "votes", {**_VOTES, "effect": "0.0"}, 40, most=0.05,
    ),
    Measured(
        "`ptr.generalized_release`", "root mean square error of the mean of a group; no interval", "ptr.features",
        "error", "loss", _GROUP, 40, beside="safety_bound",
    ),
)  # fmt: skip


@cache
def _records(
    experiment: str, cell: tuple[tuple[str, str], ...], methods: tuple[str, ...], reps: int
) -> tuple[Record, ...]:
    only = {name: [value] for name, value in cell} | {"method": list(methods)}
    return tuple(run_experiment(load(experiment), OUT, reps=reps, only=only, progress=False))


def coverage() -> list[Row]:
    """The rows of evidence/verbs.md: each figure with what is asked of it."""
    rows: list[Row] = []
    print(
        "\n| cell | verb | what is counted | measured | asked | beside | command |\n| --- | --- | --- | --- | --- | --- | --- |"
    )
    for one in MEASURED:
        methods = (one.method, *([one.beside] if one.beside else ()))
        cell = tuple(one.cell.items())
        found = {
            row["method"]: row
            for row in _records(one.experiment, cell, methods, one.reps)
            if row["quantity"] == one.quantity
        }
        own = found[one.method]
        value, (side, bar) = own["value"], one.bar
        slack = 3 * sqrt(bar * (1 - bar) / max(own["replications"], 1)) if side else 0.0
        passed = {"at least": value >= bar - slack, "at most": value <= bar + slack}.get(side, True)
        asked = f"{side} {_digits(bar)}" if side else "-"
        beside = "-" if not one.beside else f"{_digits(found[one.beside]['value'])} ({_title(one)})"
        setting = ", ".join(
            f"{name} {int(value):,}" if name == "n" else f"{name} {value}" for name, value in cell if name != "block"
        )
        command = f"`confide lab run {one.experiment} --reps {one.reps}`"
        print(
            f"| {setting} | {one.verb} | {one.what} | {_digits(value)} ({_digits(own['error'] or 0.0)}) | {asked} | {beside} | {command} |",
            flush=True,
        )
        rows.append(
            {
                "check": f"{one.verb}: {one.what}",
                "value": value,
                "error": own["error"],
                "asked": asked,
                "passed": bool(passed),
            }
        )
    return rows


def _title(one: Measured) -> str:
    return next(
        block.titles.get(one.beside, one.beside) for block in load(one.experiment).blocks if one.beside in block.methods
    )


def _digits(value: float) -> str:
    """To three digits."""
    return f"{value:.3g}"


# the audit ----------------------------------------------------------------------------------------------------------------

_UNIT = cf.Schema({name: cf.Numeric(0, 1, on_missing="midpoint", steps=257) for name in "aby"})


def _total(table: Any, noise: Any) -> Any:
    """A whole number with geometric noise of scale 1; one record moves it by at most 1."""
    return np.rint(np.clip(table[:, 0], 0, 1).sum()) + noise.discrete_laplace(1, 1)


def _choice() -> GeneralizedRelease:
    votes = FeatureVotes(2, 1, 10)
    return GeneralizedRelease(votes.mechanism, votes.loss, votes.statistic, MOVES, test_share=1.0)


class ByContents(GeneralizedRelease):
    """A planted fault: blocks of rows in the order of their contents, where a replaced record moves those between its two places."""

    def draw(self, source: Any, plan: Any, meter: Any) -> Any:
        """As the method draws, but in that order."""
        with patch("confide.methods.ptr.generalized_release.divided", lambda rows, *_: [rows]):
            return super().draw(source, plan, meter)


def _planted() -> GeneralizedRelease:
    return ByContents(**{own.name: getattr(_choice(), own.name) for own in fields(GeneralizedRelease)})


def _mechanism() -> GeneralizedRelease:
    return GeneralizedRelease(_total, lambda size: 1.5, lambda table: float(len(table)), 1.0, columns=("a",))


#: verb -> the method that it releases by, and whether it has a planted fault
OPAQUE: Mapping[str, tuple[Callable[[], GeneralizedRelease], bool]] = {
    "`ptr.select_features`, 10 blocks": (_choice, False),
    "planted: the same, blocks in the order of contents": (_planted, True),
    "`ptr.generalized_release` of a noisy total": (_mechanism, False),
}


def released() -> list[Row]:
    """Verbs that release: attacked as a whole."""
    rows: list[Row] = []
    print("\n| verb | claim | lower bound | draws | verdict |\n| --- | --- | --- | --- | --- |")
    for verb, (make, wrong) in OPAQUE.items():
        claim = cf.ApproxDP(2, 0.1, relation="substitute")
        found: Audit = audit(make(), _UNIT, privacy=claim, relation="substitute", runs=RUNS, seed=1)
        shown = max((one for one in found if one.draws), key=lambda one: one.lower_bound)
        print(
            f"| {verb} | epsilon = 2, delta = 0.1 | {shown.quantity} >= {shown.lower_bound:.3g} | {shown.draws:,} | {found.verdict} |",
            flush=True,
        )
        rows.append(
            {
                "check": f"audit of {verb}: {found.verdict}",
                "value": shown.lower_bound,
                "passed": (found.verdict == "violated") == wrong,
            }
        )
    rows.append(_renyi())
    return rows


def _renyi() -> Row:
    """The Gaussian test where it is about to turn, and how often it passes at distance 0."""
    test, source, runs = RenyiTest(mu=1.0, false_pass=0.01), SecureNoise(), max(RUNS, 20_000)
    edge = test.threshold

    def passes(distance: float, runs: int) -> Any:
        return np.array([float(test(distance, source)) for _ in range(runs)])

    found = mu_lower_bound(
        passes, edge - 0.5, edge + 0.5, runs=runs, claim=cf.GDP(1.0), vectorized=True, name="RenyiTest"
    )
    wrong = float(passes(0.0, runs).mean())
    rare = wrong <= 0.01 + 4 * sqrt(0.01 / runs)
    lines = (
        ("where it turns", "mu = 1", f"mu >= {found.lower_bound:.3g}", found.draws, found.verdict),
        ("at distance 0", "passes at most 0.01", f"passes {_digits(wrong)}", runs, "holds" if rare else "violated"),
    )
    for where, claim, shown, draws, verdict in lines:
        print(f"| `ptr.RenyiTest` {where} | {claim} | {shown} | {draws:,} | {verdict} |", flush=True)
    return {
        "check": "RenyiTest: its mu and its false passes",
        "value": found.lower_bound,
        "false_passes": wrong,
        "passed": not found.violated and rare,
    }


def _line(folder: Path) -> Callable[[], Any]:
    return lambda: cf.regression.compare_models(cf.Release.load(folder / "line.json"), ["b"]).to_frame()


def _trial(folder: Path) -> Callable[[], Any]:
    return lambda: cf.synthesis.treatment_effects(folder / "trial.parquet", "k").to_frame()


def _region(folder: Path) -> Callable[[], Any]:
    def ends() -> Any:
        found: Any = cf.infer(cf.Release.load(folder / "slope.json"))
        return found.conf_int(simultaneous=True)

    return ends


def _bounded(folder: Path) -> Callable[[], Any]:
    return lambda: cf.local.fit(folder / "rows.parquet", "y ~ a", bounds=(-4, 4)).to_frame()


READING: Mapping[str, Callable[[Path], Callable[[], Any]]] = {
    "`regression.compare_models`": _line,
    "`synthesis.treatment_effects`": _trial,
    "`conf_int(simultaneous=True)`": _region,
    "`local.fit(bounds=)`": _bounded,
}


def read() -> list[Row]:
    """Verbs that read what was published: they get a file alone, and give the same numbers of it each time."""
    rows: list[Row] = []
    print("\n| verb | reads | the same numbers each time |\n| --- | --- | --- |")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _publish(folder)
        for verb, make in READING.items():
            ask = make(folder)
            first, again = ask(), ask()
            same = bool(first.equals(again)) and bool(np.isfinite(first.select_dtypes("number").to_numpy()).any())
            what = "a file of protected rows" if "local" in verb else "the file of a release"
            print(f"| {verb} | {what} | {'yes' if same else 'NO'} |", flush=True)
            rows.append({"check": f"{verb} reads a file alone", "value": float(same), "passed": same})
    return rows


def _publish(folder: Path) -> None:
    """A line, a synthetic trial, a posterior and protected rows in files; the records are gone when this ends."""
    g, n = np.random.default_rng(1), 4_000
    schema = cf.Schema(
        {
            "k": cf.Categorical(["control", "drug"], on_missing="control"),
            **{name: cf.Numeric(0, 1, on_missing=0.5) for name in "ab"},
            "y": cf.Numeric(-4, 4, on_missing=0.0),
        },
        dataset="verbs",
    )
    records = {"k": g.choice(["control", "drug"], n), "a": g.random(n), "b": g.random(n)}
    records["y"] = np.clip(records["a"] + 0.3 * (records["k"] == "drug") + 0.5 * g.standard_normal(n), -4, 4)
    data, noise = cf.read(records, schema), SimulatedNoise(1)
    line, slope = cf.regression.LeastSquares("y ~ a + b"), cf.intervals.Slope("y ~ a")
    cf.release(line, data, cf.GDP(1.0), ledger=None, noise=noise).save(folder / "line.json")
    cf.synthesize(data, "y ~ k + a", privacy=cf.GDP(1.0), ledger=None, path=folder / "trial.parquet", noise=noise)
    level = cf.GDP(1.0, relation="substitute")
    cf.release(slope, data, level, ledger=None, n=n, noise=noise).save(folder / "slope.json")
    cf.local.protect(records, schema, folder / "rows.parquet", columns=["a"], public=["y"], noise=0.3, ledger=None)


def run() -> list[Row]:
    return [*coverage(), *released(), *read()]
