"""What an adversarial reader tried: dropped records, published lines, unpaid statements, clipped residuals."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np
import pandas as pd
import pytest
from tests.simulated import simulated

import confide as cf
from confide.core import Branches, Composed, Meter
from confide.core.lost_values import NAME as LOST, Share
from confide.methods.regression.sums.linear_rows import private_box
from confide.noise import SecureNoise, SimulatedNoise
from confide.sources.simulated import SIMULATED_ROWS
from confide.sums.coding import Box
from confide.testing import ZeroNoise

pytestmark = pytest.mark.usefixtures("declared")

SCHEMA = cf.Schema({"a": cf.Numeric(-2, 3), "y": cf.Numeric(-20, 30)}, dataset="d")
SSP = cf.regression.SSP


METHOD = SSP("y ~ a", recenter=False)


def rel(frame, method=METHOD, schema=SCHEMA, mu=1e4, noise=None):
    return cf.release(method, cf.read(frame, schema), cf.GDP(mu), ledger=None, noise=noise or ZeroNoise())


@pytest.mark.parametrize("recenter", ["auto", False])
def test_the_published_line_is_a_function_of_the_published_numbers(recenter):
    g = np.random.default_rng(1)
    a = g.uniform(-2, 3, 800)
    method = SSP("y ~ a", recenter=recenter)
    made = rel({"a": a, "y": 2 * a + g.standard_normal(800)}, method, mu=0.7, noise=SimulatedNoise(3))
    design = cf.schema.ModelMatrix.of("y ~ a", SCHEMA)
    box, drawn = None, made["re-centred moments" if recenter else "moments"]
    if recenter:
        ranges = made["ranges"]
        box = private_box(design, ranges.decode(), sqrt(ranges.variance))
        assert made.public["box"].tolist() == [list(box.middle), list(box.half)]
        assert box != Box.of(design)
    layout = method._layout(SCHEMA)
    if recenter:
        layout = layout.far(float(made.public["cap"][0]))
    (moments,) = layout.decoded(drawn.decode(), sqrt(drawn.variance)).each
    noise = sqrt(made["re-centred meat" if recenter else "meat"].variance)
    theta, limit = method._start(layout, moments, box, noise)
    assert made.public["theta"].tolist() == theta.tolist() and made.public["limits"].tolist() == [limit]
    assert set(made.public) == ({"theta", "limits"} | ({"box", "cap"} if recenter else set()))


@pytest.mark.parametrize("bad", [(np.nan, 1.0), (1.0, np.nan), (np.inf, 1.0)])
@pytest.mark.parametrize("recenter", ["auto", False])
def test_a_dropped_record_is_as_if_it_were_not_there(bad, recenter):
    g = np.random.default_rng(2)
    a = g.uniform(-2, 3, 300)
    frame = pd.DataFrame({"a": a, "y": 2 * a})
    more = pd.concat([frame, pd.DataFrame([bad] * 40, columns=["a", "y"])], ignore_index=True)
    method = SSP("y ~ a", recenter=recenter, clipping_check=False)
    assert rel(frame, method).to_json() == rel(more, method).to_json()


@pytest.mark.parametrize("recenter", ["auto", False])
def test_a_record_lost_by_a_derived_term_is_as_if_it_were_not_there(recenter):
    g = np.random.default_rng(2)
    a = g.uniform(0, 3, 300)
    frame = pd.DataFrame({"a": a, "y": 2 * a})
    more = pd.concat([frame, pd.DataFrame([(-1.0, 99.0)] * 40, columns=["a", "y"])], ignore_index=True)
    method = SSP("y ~ sqrt(a)", recenter=recenter, clipping_check=False)
    assert rel(frame, method).to_json() == rel(more, method).to_json()


@pytest.mark.parametrize("recenter", ["auto", False])
def test_a_missing_response_out_of_bounds_feature_is_not_counted_as_clipped(recenter):
    frame = pd.DataFrame({"a": [np.nan] * 50, "y": [0.5] * 50})
    assert not any(own.clipped for own in rel(frame, SSP("y ~ a", recenter=recenter)).lost)


def test_noise_of_a_matrix_has_the_stated_variances():
    # one pass: the matrix is all that is drawn
    plan = cf.plan(SSP("y ~ a", cov="classical", clipping_check=False, recenter=False), SCHEMA, cf.GDP(1.0))
    noise = SimulatedNoise(1)
    z = []
    for _ in range(4000):
        with Meter(plan, noise) as m:
            z.append(m.draw("moments", np.zeros((3, 3), dtype=object)).values.astype(float))
    z = np.array(z) / float(plan.spend("moments").scale) ** 0.5
    assert np.allclose(z[:, [0, 1, 2], [0, 1, 2]].var(0), 1, atol=0.12) and np.allclose(
        z[:, [0, 0, 1], [1, 2, 2]].var(0), 0.5, atol=0.06
    )
    c = np.cov(np.array([x[np.triu_indices(3)] for x in z]).T)
    assert np.abs(c - np.diag(np.diag(c))).max() < 0.08


def test_each_release_has_its_own_key():
    class Counting(SecureNoise):
        keys = 0

        def rekey(self):
            Counting.keys += 1
            super().rekey()

    cf.release(
        SSP("y ~ a", recenter=False), cf.read(SCHEMA.sample(10, 1), SCHEMA), cf.GDP(1.0), ledger=None, noise=Counting()
    )
    assert Counting.keys >= 1


def test_the_covariance_of_the_noise_and_the_corrected_variance():
    from confide.methods.regression.evidence.normal_equations import Line, NoisyMoments, fit

    g = np.random.default_rng(5)
    p, sd, sb, n = 3, 12.0, 6.0, 400
    X = np.c_[np.ones(n), g.uniform(-1, 1, (n, 2))]
    th = np.array([0.2, 0.9, -0.8])
    t = X @ th + 0.4 * g.standard_normal(n)
    A, b, q = X.T @ X, X.T @ t, t @ t

    s2 = []
    draws = []
    for _ in range(6000):
        U = np.triu(g.standard_normal((p, p)) * sd / 2**0.5, 1)
        N = U + U.T + np.diag(sd * g.standard_normal(p))
        e = sb * g.standard_normal(p)
        draws.append(e - N @ th)
        s2.append(fit(NoisyMoments(A + N, b + e, q + g.standard_normal(), sd, sb, 1.0), Line.free(p)).s2)
    G = NoisyMoments(A, b, q, sd, sb, 1.0).noise_covariance(th)
    assert np.allclose(np.cov(np.array(draws).T), G, atol=0.08 * G.max())
    exact = fit(NoisyMoments(A, b, q, 0, 0, 0), Line.free(p)).s2
    assert np.median(s2) == pytest.approx(exact, rel=0.025)


def scaled(event):
    """The tree with a hundredth of every scale."""
    match event:
        case Composed(parts):
            return Composed(tuple(map(scaled, parts)))
        case Branches(branches):
            return Branches(tuple(map(scaled, branches)))
    return replace(event, scale=event.scale / 100)


@pytest.mark.parametrize("what", ["guarantee", "scale", "request"])
@pytest.mark.parametrize("recenter", ["auto", False])
def test_the_gate_believes_no_statement_that_the_spends_do_not_pay_for(tmp_path, what, recenter):
    class Wrong(SSP):
        def plan(self, schema, privacy, *, n=None, public=None):
            p = super().plan(schema, cf.GDP(2.0) if what == "request" else privacy, n=n)
            if what == "guarantee":
                return replace(p, guarantees=(cf.GDP(1e-3, relation="add-remove"),))
            if what == "scale":
                return replace(p, event=scaled(p.event))
            return p

    book = cf.Ledger.create(tmp_path / "b.db", dataset="d", budget=cf.GDP(3.0))
    with pytest.raises(cf.errors.PlanError):
        data = cf.read(SCHEMA.sample(10, 1), SCHEMA, dataset="d")
        cf.release(Wrong("y ~ a", recenter=recenter), data, cf.GDP(1.0), ledger=book)
    assert "0.0% of the budget used" in str(book.show())


@pytest.mark.parametrize(("mu", "rows"), [(1e-5, 1), (0.01, 2000)])
@pytest.mark.parametrize("recenter", ["auto", False])
def test_noise_that_does_not_fit_its_integers_is_refused_in_the_plan(mu, rows, recenter):
    with pytest.raises(cf.errors.PlanError):
        cf.plan(SSP("y ~ a", recenter=recenter), cf.Schema(dict(SCHEMA.columns), rows_per_unit=rows), cf.GDP(mu))


@pytest.mark.parametrize("recenter", ["auto", False])
def test_a_binary_response_is_covered(recenter):
    schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Integer(0, 1)})
    hits = []
    for r in range(60):
        g = np.random.default_rng([r, 7])
        x = g.uniform(size=8000)
        y = (g.uniform(size=8000) < 0.9 + 0.05 * x) * 1.0
        data = cf.read({"x": x, "y": y}, schema)
        c = simulated(SSP("y ~ x", recenter=recenter), data, cf.GDP(2.0), r).conf_int().to_numpy()
        hits.append((c[:, 0] <= [0.9, 0.05]) & (c[:, 1] >= [0.9, 0.05]))
    assert np.mean(hits) > 0.88


@pytest.mark.parametrize("recenter", ["auto", False])
def test_intervals_of_an_ok_table_can_be_used(recenter):
    schema = cf.Schema({"x": cf.Numeric(0, 1), "z": cf.Numeric(0, 1), "y": cf.Numeric(-5, 13)})
    g = np.random.default_rng(3)
    X = g.uniform(size=(50_000, 2))
    y = X @ [1, 2] + 0.05 * g.standard_normal(50_000)
    for seed in range(10):
        data = cf.read(np.c_[X, y], schema)
        r = simulated(SSP("y ~ x + z", recenter=recenter), data, cf.GDP(10.0), seed)
        if r.status == "valid":
            assert (r.conf_int().diff(axis=1).iloc[:, 1] < 20 * r.bse).all()


def test_the_clipped_share_is_a_share_of_records():
    g = np.random.default_rng(0)
    n = 20_000
    X = (g.uniform(size=(n, 8)) < 0.5) * 1.0
    y = X.sum(1) + g.standard_normal(n)
    top = float(np.quantile(y, 0.98))
    schema = cf.Schema({**{f"x{j}": cf.Integer(0, 1) for j in range(8)}, "y": cf.Numeric(-4, top)})
    r = cf.infer(rel(np.c_[X, y], SSP("y ~ " + "+".join(f"x{j}" for j in range(8))), schema))
    assert "0.0% below, 2.0% above" in dict(r.facts)["Clipped"]


@pytest.mark.parametrize(("clipped", "flagged"), [(51, True), (50, False)])
def test_a_share_above_half_a_per_cent_is_flagged(clipped: int, flagged: bool) -> None:
    """50 of 10,000 are half a per cent; the noise is far below one value."""
    assert Share(clipped / 10_000, 1e-9, 3).above(0.005) is flagged


def test_clipping_of_a_derived_response_is_counted():
    schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(1, 1000)})
    y = np.exp(np.linspace(0.1, 6.8, 1000))
    made = rel({"x": np.linspace(0, 1, 1000), "y": y}, SSP("log(y) ~ x", term_bounds={"log(y)": (2.5, 3.5)}), schema)
    assert made[LOST].decode().reshape(-1, 4)[-1, 1:3].sum() > 800


def test_verify_compares_the_charged_guarantee(tmp_path):
    book = cf.Ledger.create(tmp_path / "b.db", dataset="d", budget=cf.GDP(1.0))
    made = cf.release(SSP("y ~ a", recenter=False), cf.read(SCHEMA.sample(10, 1), SCHEMA), cf.GDP(0.9), ledger=None)
    about = {"dataset": "d", "unit": "record", "rows_per_unit": 1}
    charge = book.charge((cf.GDP(0.01, relation="add-remove"),), **about, method="ssp 1", plan_sha256=made.plan.sha256)
    book.receipt(charge, release_sha256=made.sha256, version="0")
    assert not cf.verify(made, book).ok


def test_no_kind_of_exception_leaves_the_private_part(tmp_path):
    class Panic(BaseException):
        pass

    class Boom(SSP):
        def draw(self, source, plan, meter):
            if source.count() == SIMULATED_ROWS:  # what fails in the rehearsal is never charged
                return super().draw(source, plan, meter)
            raise Panic("the secret is 42")

    book = cf.Ledger.create(tmp_path / "b.db", dataset="d", budget=cf.GDP(3.0))
    with pytest.raises(cf.errors.ReleaseError):
        cf.release(Boom("y ~ a"), cf.read(SCHEMA.sample(10, 1), SCHEMA), cf.GDP(1.0), ledger=book)
