"""Correlations and components: without noise the non-private answers, influences and noise by perturbation, coverage, what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.few import few
from tests.messages import refuses

import confide as cf
from confide.core import Gram
from confide.methods.reduction.components import Spectrum
from confide.methods.reduction.correlations import measures_of
from confide.methods.reduction.sums import InfluenceRows, JointMomentRows, JointMoments
from confide.noise import SimulatedNoise
from confide.testing import check_method
from confide.testing.test_data import ZeroNoise

NAMES = ("a", "b", "c", "d")
SCHEMA = cf.Schema({name: cf.Numeric(-4, 4) for name in NAMES})
_MIX = np.array([[1, 0.8, 0.3, 0], [0, 0.6, 0.3, 0], [0, 0, 0.9, 0.2], [0, 0, 0, 1]])


def _records(n: int, seed: int = 1, heavy: bool = False) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    z = g.standard_t(6, size=(n, 4)) * 0.7 if heavy else g.normal(size=(n, 4))
    return pd.DataFrame(np.clip(z @ _MIX, -4, 4), columns=list(NAMES))


def test_without_noise_they_are_the_plain_answers() -> None:
    frame = _records(3_000)
    data = cf.read(frame, SCHEMA)
    found = cf.infer(cf.release(cf.reduction.Correlations(NAMES), data, cf.GDP(1.0), ledger=None, noise=ZeroNoise()))
    assert found.matrix().to_numpy() == pytest.approx(np.corrcoef(frame.T), abs=1e-4)
    for scale, matrix in (("correlation", np.corrcoef(frame.T)), ("covariance", np.cov(frame.T, bias=True))):
        method = cf.reduction.PCA(NAMES, scale=scale)
        own = cf.infer(cf.release(method, data, cf.GDP(20.0), ledger=None, noise=ZeroNoise()))
        values, vectors = np.linalg.eigh(matrix)
        assert own.estimates == pytest.approx(values[::-1], rel=2e-3)
        assert np.abs((own.vectors * vectors[:, ::-1]).sum(axis=0)) == pytest.approx(np.ones(4), abs=1e-3)
        scores = own.transform(frame)
        assert np.corrcoef(scores.T) == pytest.approx(np.eye(4), abs=0.01)
        assert own.transform(frame.to_numpy()).equals(scores)


def test_the_rows_keep_their_bound_and_neighbours_move_the_gram_by_no_more() -> None:
    rows = JointMomentRows(measures_of(NAMES, SCHEMA, None))
    g = np.random.default_rng(3)
    codes = g.integers(0, SCHEMA["a"].steps, size=(4, 300)).astype(float)
    codes[:, :16] = np.array(np.meshgrid(*[[0, SCHEMA["a"].steps - 1]] * 4)).reshape(4, -1)
    own = rows(codes)
    assert ((own**2).sum(axis=0) <= rows.l2_squared).all() and (np.abs(own).sum(axis=0) <= rows.l1).all()
    gram = Gram(rows, entry_bits=20)
    whole = own.astype(int).astype(object)
    for i in range(20):
        moved = gram.moved_squared(whole[:, i], whole)
        assert max(moved) <= gram.sensitivity_squared("substitute")
        assert max(gram.moved_squared(whole[:, i] * 0, whole)) <= gram.sensitivity_squared("add-remove")


def test_influences_and_noise_are_those_of_small_changes() -> None:
    frame = _records(4_000, heavy=True).to_numpy() / 4
    measures = measures_of(NAMES, SCHEMA, None)
    rows = JointMomentRows(measures)
    codes = np.rint((frame.T + 1) / 2 * (SCHEMA["a"].steps - 1))
    coded = rows(codes) / rows.steps
    gram = coded @ coded.T
    for correlation in (True, False):
        own = Spectrum.of(JointMoments(gram, 1.0), 4, correlation)
        influence = InfluenceRows(measures, 4).at(
            own.own.means, own.directions, own.squares, own.levels, np.full(4, 1e4)
        )
        squared = influence(codes[:, :40]) / influence.steps * 1e4
        for i in range(40):
            twice = gram + np.outer(coded[:, i], coded[:, i])
            change = (Spectrum.of(JointMoments(twice, 1.0), 4, correlation).values - own.values) * (len(frame) + 1)
            assert squared[:, i] == pytest.approx(change**2, rel=0.05, abs=0.02)
        g = np.random.default_rng(2)
        shaken = []
        for _ in range(300):
            noise = g.normal(size=gram.shape)
            noisy = (
                gram
                + np.triu(noise) / np.sqrt(2)
                + np.triu(noise, 1).T / np.sqrt(2)
                + np.diag(np.diag(noise)) * (1 - 1 / np.sqrt(2))
            )
            shaken.append(Spectrum.of(JointMoments(noisy, 1.0), 4, correlation).values)
        assert np.var(shaken, axis=0) == pytest.approx(own.noise, rel=0.35)


@pytest.mark.few("0.5-correlations")
@pytest.mark.parametrize(
    "method",
    few([cf.reduction.Correlations(NAMES), cf.reduction.PCA(NAMES, 3), cf.reduction.PCA(NAMES, 2, "covariance")], 0),
    ids=lambda m: m.name,
)
@pytest.mark.parametrize("mu", [0.5, 3.0])
def test_intervals_cover_the_population(method: object, mu: float) -> None:
    """40 replications of heavy-tailed records; fails where the 99.9 % interval of the coverage lies below .95."""
    from scipy import stats

    from confide.schema import CodedFrame

    truth = method.reference(CodedFrame.of(_records(200_000, 99, heavy=True), SCHEMA))  # type: ignore[attr-defined]
    hits, runs = [], 40
    for seed in range(runs):
        data = cf.read(_records(4_000, seed, heavy=True), SCHEMA)
        found = cf.infer(cf.release(method, data, cf.GDP(mu), ledger=None, noise=SimulatedNoise(seed)))  # type: ignore[arg-type]
        assert found.status == "valid"
        ends = found.conf_int()
        hits.append([ends[0][name] <= truth[name] <= ends[1][name] for name in found.names])
    share = np.mean(hits)
    assert stats.beta.ppf(0.9995, share * runs + 1, max(runs - share * runs, 1e-9)) >= 0.95
    assert share < 1 or mu < 1


def test_weak_and_partial_answers_say_so() -> None:
    frame = _records(400).assign(d=0.001)
    found = cf.reduction.correlation(
        NAMES, cf.read(frame, SCHEMA), privacy=cf.GDP(3.0), ledger=None, noise=SimulatedNoise(1)
    )
    assert (
        found.status == "partial" and np.isnan(found.conf_int()[0]["r(a, d)"]) and np.isfinite(found.params["r(a, b)"])
    )
    weak = cf.reduction.pca(NAMES, cf.read(frame, SCHEMA), privacy=cf.GDP(0.5), ledger=None, noise=SimulatedNoise(1))
    assert weak.status == "imprecise" and np.isnan(weak.conf_int().to_numpy()).all()
    with refuses(cf.NoResult):
        weak.transform(frame)


def test_a_variance_has_the_noise_that_is_told_of_it() -> None:
    """Of the count too, by which the sum of 1 - u^2 is divided: all entries of the matrix shaken, 4,000 times."""
    frame = _records(4_000).to_numpy() / 4 * 0.3 + 0.2
    rows = JointMomentRows(measures_of(NAMES, SCHEMA, None))
    coded = rows(np.rint((frame.T + 1) / 2 * (SCHEMA["a"].steps - 1))) / rows.steps
    gram, g, found = coded @ coded.T, np.random.default_rng(6), []
    for _ in range(4_000):
        noise = np.tril(g.normal(size=gram.shape) * 9 / np.sqrt(2), -1)
        found.append(
            np.diag(JointMoments(gram + noise + noise.T + np.diag(9 * g.normal(size=len(gram))), 81.0).covariance)
        )
    # the sd of 4,000 draws is off by more than 6 % once in 10^7 times
    assert np.std(found, axis=0) == pytest.approx(JointMoments(gram, 81.0)._variance_sd, rel=0.06)


@pytest.mark.usefixtures("declared")
def test_a_plan_says_from_how_many_records_on_a_column_is_answered() -> None:
    """Typical spreads are looked at; where it says that an answer is likely there is one, at a third of the records there is none."""
    typical = cf.Schema({name: cf.Numeric(-4, 4, typical=(-1.2, 1.2)) for name in NAMES})
    for method in (cf.reduction.Correlations(NAMES), cf.reduction.PCA(NAMES, 2)):
        asked = cf.plan(method, typical, cf.GDP(1.0)).notes[-1]
        needed = int(asked.rpartition("d from ")[2].replace(",", ""))
        assert "is unlikely for columns a, b, c, d" in cf.plan(method, typical, cf.GDP(1.0), n=needed // 2).notes[-1]
        assert (
            f"with {needed:,} records an answer is likely" in cf.plan(method, typical, cf.GDP(1.0), n=needed).notes[-1]
        )
        for n, least, most in ((needed, 0.8, 1.0), (needed // 3, 0.0, 0.0)):
            clear = []
            for seed in range(12):
                frame = pd.DataFrame(np.random.default_rng(seed).normal(size=(n, 4)) * 0.6, columns=list(NAMES))
                data = cf.read(frame.clip(-4, 4), typical)
                release = cf.release(method, data, cf.GDP(1.0), ledger=None, noise=SimulatedNoise(seed))
                found = cf.infer(release)
                own = found if isinstance(method, cf.reduction.Correlations) else found.correlations
                clear.append(np.isfinite(own.estimates).mean())
            assert least <= np.mean(clear) <= most
    assert "is unlikely for columns a, b, c, d" in cf.plan(method, SCHEMA, cf.GDP(1.0), n=50).notes[-1]
    schema = cf.plan(method, typical, cf.GDP(1.0)).to_json()
    assert "answered where" not in schema, "a forecast is in no file"


def test_pictures_and_the_command_line(tmp_path: object) -> None:
    from pathlib import Path

    from typer.testing import CliRunner

    from confide.cli import app

    folder = Path(str(tmp_path))
    _records(3_000).to_csv(folder / "records.csv", index=False)
    (folder / "schema.toml").write_text(SCHEMA.to_toml())
    for line in (
        f"plan a+b+c+d --method pca --param components=2 --schema {folder}/schema.toml --mu 1 -o {folder}/plan.json",
        f"release {folder}/plan.json {folder}/records.csv --unaccounted -o {folder}/r.json",
        f"infer {folder}/r.json --report {folder}/r.html --plot {folder}/r.png",
    ):
        done = CliRunner().invoke(app, line.split())
        assert done.exit_code == 0, done.output
    result = cf.infer(cf.Release.from_json((folder / "r.json").read_text()))
    assert "explained variance" in result.plot().get_ylabel()
    assert len(result.correlations.plot().images) == 1


def test_the_transformer_is_the_same_release() -> None:
    from sklearn.base import clone

    from confide.sklearn import PrivatePCA

    frame = _records(3_000)
    model = PrivatePCA(2, privacy=cf.GDP(1.0), bounds=(-4, 4), ledger=None, noise=SimulatedNoise(3))
    scores = clone(model).fit_transform(frame)
    own = cf.reduction.pca(
        NAMES, cf.read(frame, SCHEMA), privacy=cf.GDP(1.0), ledger=None, components=2, noise=SimulatedNoise(3)
    )
    assert scores == pytest.approx(own.transform(frame).to_numpy())
    with refuses(cf.errors.PlanError):
        PrivatePCA(privacy=cf.GDP(1.0), ledger=None).fit(frame)
    with pytest.raises(ValueError, match="missing"):
        model.fit(frame).transform(frame[["a", "b"]])
    with pytest.raises(ValueError, match="same order"):
        model.transform(frame[["b", "a", "c", "d"]])
    assert not hasattr(model.fit(frame.to_numpy()), "feature_names_in_")


def test_what_is_refused() -> None:
    with refuses(cf.errors.PlanError):
        cf.reduction.PCA(("a",))
    with refuses(cf.errors.PlanError):
        cf.reduction.PCA("a + b", 3)
    with refuses(cf.errors.PlanError):
        cf.reduction.PCA("a + b", scale="raw")
    with refuses(cf.errors.PlanError):
        cf.plan(
            cf.reduction.Correlations("a + g"),
            cf.Schema({"a": cf.Numeric(0, 1), "g": cf.Categorical(["u", "v"])}),
            cf.GDP(1.0),
        )


@pytest.mark.long
@pytest.mark.parametrize(
    "method", [cf.reduction.Correlations(NAMES[:3]), cf.reduction.PCA(NAMES[:3], 2)], ids=lambda m: m.name
)
def test_they_keep_the_contract(method: object) -> None:
    assert check_method(method, SCHEMA, replications=20).ok  # type: ignore[arg-type]
