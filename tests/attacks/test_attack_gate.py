"""Attacks on the gate: a release that no meter drew, and the exact number of records, asked for without paying."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import special
from tests.golden.golden_cases import CASES, SCHEMA, schema_of
from tests.messages import refuses

import confide as cf
import confide.testing
from confide.core import Meter, Method, Noisy, Plan, Total, leaves
from confide.core.statistic import WrappedSource
from confide.guarantees.selection import run_law
from confide.noise import SimulatedNoise
from confide.sources.simulated import SIMULATED_ROWS
from confide.sums import ColumnMoments
from confide_lab.methods.logistic.methods import LogisticObjective

TABLE = cf.Schema({"v": cf.Numeric(0, 10), "w": cf.Numeric(0, 10)}, dataset="d")


@dataclass(frozen=True)
class Thief(Method):
    """Plans a noisy sum and then tries to bring the exact one out."""

    column: str = "v"
    how: str = "forged release"
    name: ClassVar[str] = "thief"
    family: ClassVar[str] = "intervals"
    source: ClassVar[str] = "none"

    def about(self, schema: Any) -> ColumnMoments:
        return ColumnMoments(schema, self.column)

    def statistics(self, rows: ColumnMoments, relation: str) -> Any:
        return {"moments": (Total(rows, nonnegative=True), Fraction(1))}

    def infer(self, *asked: Any) -> Any:
        raise cf.NoResult("nothing is read of what it releases")

    def draw(self, source: Any, plan: Plan, meter: Meter) -> Any:
        if self.how != "public" and source.count() == SIMULATED_ROWS:  # it behaves while it is rehearsed
            return super().draw(source, plan, meter)
        (exact,) = source.aggregate(plan.statistic("moments"))
        spend = plan.spend("moments")
        forged = Noisy(np.asarray(exact, dtype=object), spend.step, spend.law, spend.scale, spend.norm)
        release = cf.Release(plan, "released", {"moments": forged}, plan.guarantees)
        match self.how:
            case "forged release":  # no meter was opened
                return release
            case "forged beside a draw":
                meter.draw("moments", exact)
                return release
            case "nothing drawn":
                return {"moments": exact}
            case "raw noise":
                meter.noise("moments")
            case "second meter":
                Meter(plan, SimulatedNoise(1)).draw("moments", exact)
            case "decline by the records":
                meter.draw("moments", exact)
                if int(exact[0]) >> 20 == 50:
                    meter.decline()
            case "text among public numbers":
                meter.draw("moments", exact)
                return {"label": np.array([f"secret {exact[0]}"])}
            case "more axes than a file holds":
                meter.draw("moments", exact)
                return {"a": np.zeros((1,) * 30)}
            case "a source's error":
                raise cf.errors.SourceError(f"secret {exact[0]}")
            case "public":
                meter.draw("moments", exact)
                return {"exact": np.asarray(exact, dtype=float)}
        return {}


def _ledger(path: Path, relation: str = "add-remove", mu: float = 2.0) -> cf.Ledger:
    return cf.Ledger.create(path / "ledger.db", dataset="d", budget=cf.GDP(mu, relation=relation))


LATER = ("decline by the records", "text among public numbers", "more axes than a file holds", "a source's error")


@pytest.mark.parametrize(
    "how", ["forged release", "forged beside a draw", "nothing drawn", "raw noise", "second meter", *LATER]
)
def test_only_what_the_gates_meter_drew_can_be_released(tmp_path: Path, how: str) -> None:
    ledger = _ledger(tmp_path)
    with pytest.raises(cf.errors.ReleaseError) as error:
        cf.release(Thief(how=how), cf.read(TABLE.sample(50, 1), TABLE), cf.GDP(1.0), ledger=ledger)
    assert "the charge stays" in str(error.value) and error.value.__context__ is None
    assert "secret" not in str(error.value)


def test_exact_sums_among_public_numbers_are_found_by_the_contract() -> None:
    found = cf.testing.check_method(Thief(how="public"), TABLE, raises=False, replications=2)
    assert any("public" in str(problem) for _, problem in found.checks)


class Watched(WrappedSource):
    """A source that notes whether its records were counted."""

    counted = 0

    def count(self) -> int:
        self.counted += 1
        return int(self._source.count())


def _answers(ledger: cf.Ledger, n: int, privacy: cf.GDP) -> tuple[tuple[str, str], ...]:
    """What is said for the right number of records and for wrong ones, and whether anybody counted."""
    said = []
    for guess in (n, n - 1, n + 1, 0):
        source = Watched(cf.read(TABLE.sample(n, 1), TABLE))
        with pytest.raises(cf.ConfideError) as error:
            cf.release(cf.regression.SSP("w ~ v"), source, privacy, ledger=ledger, n=guess)
        said.append((type(error.value).__name__, str(error.value).replace(f"n = {guess}", "n")))
        assert source.counted == 0
    return tuple(dict.fromkeys(said))


def test_the_number_of_records_cannot_be_asked_for_under_an_add_remove_ledger(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path)
    assert len(_answers(ledger, 50, cf.GDP(0.1, relation="substitute"))) == 1
    assert ledger.show().units["spent_amount"] == 0


def test_an_exhausted_ledger_answers_nothing(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path, "substitute", mu=0.05)
    assert len(_answers(ledger, 50, cf.GDP(0.1))) == 1


def test_where_n_is_public_it_is_compared(tmp_path: Path) -> None:
    source = cf.read(TABLE.sample(50, 1), TABLE)
    with refuses(cf.errors.PlanError):
        cf.release(cf.regression.SSP("w ~ v"), source, cf.GDP(0.1), ledger=_ledger(tmp_path, "substitute"), n=49)


NUMBER = 313_373_133_731  # so long that noise holds it once in 10^9 releases


def test_a_planning_number_of_records_stands_in_nothing_published(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path)
    method, source = cf.regression.LeastSquares("w ~ v"), cf.read(TABLE.sample(50, 1), TABLE)
    plain, planned = (cf.plan(method, TABLE, cf.GDP(1.0), ledger=ledger, n=n) for n in (None, NUMBER))
    assert plain.sha256 == planned.sha256 and plain.to_json() == planned.to_json()
    assert f"n = {NUMBER:,}" in planned.summary() and f"n = {NUMBER:,}" not in plain.summary()
    release = cf.release(method, source, cf.GDP(1.0), ledger=ledger, n=NUMBER)
    assert str(NUMBER) not in release.to_json() and f"{NUMBER:,}" not in release.to_json()
    assert release.plan.planned_n is None and not release.plan.forecast and not release.plan.notes
    warned = cf.plan(method, TABLE, cf.ApproxDP(1.0, 0.01), n=NUMBER)
    assert "above 1/n" in warned.summary() and "above 1/n" not in warned.to_json()


@pytest.mark.parametrize("name", sorted(CASES))
def test_no_plan_under_add_remove_depends_on_n(name: str) -> None:
    method, privacy = CASES[name]
    if "add-remove" not in method.relations:
        return
    asked = privacy.resolve("add-remove")
    schema = schema_of(method)
    assert cf.plan(method, schema, asked, n=4_321).to_json() == cf.plan(method, schema, asked).to_json()


def test_noise_of_an_opaque_release_ends_with_it() -> None:
    """Nobody keeps a sampler past the draw that its proof is about, not even as a bound method."""
    plan = cf.plan(LogisticObjective("z ~ x"), SCHEMA, cf.ApproxDP(1.0, 1e-6))
    (leaf,) = leaves(plan.event)
    meter = Meter(plan, SimulatedNoise(1))
    kept = meter.noise(leaf.name).grid_gaussian
    assert len(kept(Fraction(4), 3)) == 3
    meter.opaque(leaf.name, np.zeros(2, dtype=object), Fraction(1))
    with refuses(cf.errors.ReleaseError):
        kept(Fraction(4), 3)


def test_the_number_of_runs_of_a_selection_leaves_nowhere() -> None:
    """The bound is about the best of an unknown number of runs: with that number its delta is a thousand times larger."""
    fitted, privacy = CASES["select"]
    method, source = replace(fitted, runs=6.0), cf.read(SCHEMA.sample(300, 1), SCHEMA)
    for seed in range(5):
        done = cf.release(method, source, privacy, ledger=None, noise=SimulatedNoise(seed))
        assert "runs" not in done.public and all(
            name.split()[0] in ("statistic", "step", "public") for name in done.public
        )
        assert "the number is not released" in dict(cf.infer(done).facts)["Runs"]


def test_given_the_number_of_runs_the_bound_of_a_selection_is_false() -> None:
    """A base that is exactly mu-GDP: a run is N(0, 1) or N(mu, 1), and its score is its value. delta at epsilon 1 of (K, best), of best."""
    fitted, _ = CASES["select"]
    plan = cf.plan(replace(fitted, runs=12.0), SCHEMA, cf.ApproxDP(1.0, 1e-6))
    mu, weights = plan.constants["base_mu"], run_law(plan.constants["runs"]).weights().weights
    chance = np.array(weights[:400], dtype=float) / float(sum(weights))
    x = np.linspace(-9, 9, 9_001)

    def best(k: int, shift: float) -> Any:
        return k * np.exp(-((x - shift) ** 2) / 2 + (k - 1) * special.log_ndtr(x - shift)) / np.sqrt(2 * np.pi)

    pairs = [(chance[k] * best(k, 0.0), chance[k] * best(k, mu)) for k in range(1, len(chance))]
    step = x[1] - x[0]
    known = sum(np.maximum(p - np.exp(1) * q, 0).sum() for p, q in pairs) * step
    hidden = np.maximum(sum(p for p, _ in pairs) - np.exp(1) * sum(q for _, q in pairs), 0).sum() * step
    assert hidden < 1e-6 and known == pytest.approx(1.2e-3, rel=0.05)
