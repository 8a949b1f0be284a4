"""Names of before a change of names: files made then are read, plans keep their digests, and the command line says today's name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import confide as cf
from confide import registry
from confide.cli import app
from confide.noise import SimulatedNoise

HERE = Path(__file__).parent
SCHEMA = cf.Schema({"x": cf.Numeric(0, 4), "y": cf.Numeric(-3, 9), "k": cf.Categorical(["a", "b"])})

#: file -> today's method, and the first numbers of its table as they were read when the file was made
WAS = {
    "ssp2": (cf.regression.LeastSquares("y ~ x"), ("0x1.5cc31fcee61c3p+1", "0x1.2c70e603eb2d6p-5")),
    "ssp2_robust": (cf.regression.HuberLine("y ~ x"), ("0x1.575be9121bda7p+1", "0x1.15fd8b8b00686p-6")),
    "kernel_curve": (cf.curves.Kernel("y ~ x", bandwidth=1.0), ("0x1.579663ea49cbbp+1", "0x1.57e1cfcc5ca6bp+1")),
    "class_sums": (cf.classification.ClassMeans("k ~ x"), ("0x1.036c9b666f0abp-1", "0x1.f926c93321eaap-2")),
}


@pytest.mark.parametrize("name", WAS)
def test_a_release_of_before_is_read_with_the_same_numbers(name: str) -> None:
    _, numbers = WAS[name]
    release = cf.Release.load(HERE / f"{name}.json")
    found = np.asarray(cf.infer(release).estimates).ravel()[: len(numbers)]
    # to the last bits: linear algebra may differ in them on another machine
    np.testing.assert_allclose(found, [float.fromhex(number) for number in numbers], rtol=1e-9)


@pytest.mark.parametrize("name", WAS)
def test_a_plan_of_before_is_made_again_with_its_digest_and_draws_as_today(name: str) -> None:
    method, _ = WAS[name]
    before = cf.Release.load(HERE / f"{name}.json")
    plan = cf.plan(before.plan, SCHEMA, None)
    assert plan.sha256 == before.plan.sha256 and plan.method.name == before.plan.method.name != method.name
    source = cf.read(SCHEMA.sample(600, 7), SCHEMA)
    old = cf.release(before.plan, source, ledger=None, noise=SimulatedNoise(3))
    new = cf.release(method, source, cf.GDP(1.0), ledger=None, noise=SimulatedNoise(3))
    # a version that this one reads rounds records to integers otherwise: what is drawn from rounded rows, and after them, differs
    alike = new.statistics if before.plan.method.version == method.version else ("count", "clipping", "ranges")
    for key, noisy in new.statistics.items():
        assert np.array_equal(noisy.values, old.statistics[key].values)
        assert key not in alike or np.array_equal(noisy.values, before.statistics[key].values)
    assert before.plan.method.version in (method.version, *method.reads)


def test_settings_of_before_lead_to_the_line_that_they_meant() -> None:
    made = registry.make("ssp2", formula="y ~ x", target="robust", slope_bound=2.0)
    assert made == cf.regression.HuberLine("y ~ x", slope_bound=2.0)
    assert registry.make("ssp2", formula="y ~ x", limit="none") == cf.regression.LeastSquares("y ~ x", limit="none")
    with pytest.raises(cf.PlanError, match="slope_bound"):
        registry.make("ssp2", formula="y ~ x", slope_bound=2.0)
    with pytest.raises(cf.PlanError, match="limit"):
        registry.make("ssp2", formula="y ~ x", target="robust", limit="none")


def test_a_class_of_before_says_what_to_write() -> None:
    with pytest.raises(AttributeError, match=r"cf\.regression\.LeastSquares"):
        _ = cf.regression.SSP2
    with pytest.raises(AttributeError, match=r"cf\.curves\.Kernel"):
        _ = cf.regression.KernelCurve


def test_the_command_line_says_the_name_of_today(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("schema.toml").write_text(SCHEMA.to_toml())
    done = CliRunner().invoke(
        app, ["plan", "y ~ x", "--schema", "schema.toml", "--mu", "1", "--method", "ssp2", "--set", "target=robust"]
    )
    assert done.exit_code == 0 and "ssp2 is called huber_line now" in done.stderr and "huber_line 4" in done.stdout
