"""Protected tables: what they promise, what they hold, what they refuse, and streams of records that come back."""

from __future__ import annotations

import errno
import json
import os
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import confide as cf
from confide.guarantees.curves import symmetric_laplace
from confide.local.noise_levels import KEY, Noised, Protection
from confide.noise import SimulatedNoise
from confide.sources.coding import Labels
from tests.messages import refuses, warns

SCHEMA = cf.Schema(
    {
        "x": cf.Numeric(0, 1, on_missing=0.5),
        "z": cf.Numeric(-10, 10, on_missing=0),
        "y": cf.Numeric(-5, 15),
        "g": cf.Categorical(["a", "b"]),
    },
    dataset="survey",
)


def _frame(n: int, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.random(n), "z": rng.uniform(-10, 10, n), "g": rng.choice(["a", "b", None], n)})
    frame["y"] = 1 + 2 * frame.x - 0.3 * frame.z + rng.standard_normal(n)
    return frame


def _book(folder: Path, unit: str = "record", mu: float = 6.0) -> cf.Ledger:
    budget = cf.GDP(mu, 1e-3, relation="substitute", trust="local", unit=unit)
    return cf.Ledger.create(folder / f"{unit}.db", dataset="survey", budget=budget)


def _kinds(book: cf.Ledger) -> list[str]:
    return [entry.kind for entry in book.show().rows]


def test_the_file_says_what_it_needs_and_charges_its_curve(tmp_path: Path) -> None:
    book = _book(tmp_path)
    made = cf.local.protect(
        _frame(2_000),
        SCHEMA,
        tmp_path / "p.parquet",
        columns=["x", "z"],
        public=["y", "g"],
        privacy=cf.ApproxDP(2.0, 1e-2),
        ledger=book,
        charge_delta=1e-4,
    )
    assert made.protection.curves["record"].delta(2.0) <= 1e-2 < 1.01 * made.protection.curves["record"].delta(2.0)
    told = Protection.from_json(pq.read_schema(tmp_path / "p.parquet").metadata[KEY.encode()])
    assert told == made.protection and told.public == ("y", "g")
    widths = [one.sd / (one.high - one.low) for one in told.columns.values()]
    assert widths[0] == pytest.approx(widths[1], rel=1e-6)
    shift = sqrt(sum((1 / w) ** 2 for w in widths))
    assert told.curves["record"].delta(1.0) == pytest.approx(symmetric_laplace(2, shift).delta(1.0), rel=1e-4)
    assert _kinds(book) == ["open", "charge", "receipt"]
    # the fit of the file names the digest that the receipt names
    assert book.find(cf.local.fit(tmp_path / "p.parquet", "y ~ x + z").release_sha256) is not None
    assert book.verify().ok


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_rows_keep_their_order_and_public_columns_their_values(tmp_path: Path, suffix: str) -> None:
    frame = _frame(1_000)
    frame.loc[[3, 5], "x"] = [np.nan, 7.0]
    place = tmp_path / f"p{suffix}"
    cf.local.protect(frame, SCHEMA, place, columns=["x", "z"], public=["y", "g"], noise=0.5, ledger=None, seed=4)
    seen = cf.local.read(place)
    assert list(seen.columns) == ["x", "z", "y", "g"] and len(seen) == 1_000
    assert np.array_equal(seen.y, frame.y)
    assert seen.g.where(seen.g.notna(), None).tolist() == frame.g.tolist()
    assert seen.x.notna().all()
    clipped = frame.x.fillna(0.5).clip(0, 1)
    noise = np.column_stack([(seen.x - clipped) / 0.5, (seen.z - frame.z) / 10])
    # a symmetric Laplace of unit variance: kurtosis 6, one radius for both coordinates
    assert noise.std(axis=0) == pytest.approx([1, 1], abs=0.15)
    assert np.corrcoef(noise[:, 0] ** 2, noise[:, 1] ** 2)[0, 1] > 0.1
    assert cf.local.fit(place, "y ~ x + z").simulated


def test_noise_is_on_the_grid_and_drawn_anew(tmp_path: Path) -> None:
    frame = _frame(500)
    seen = []
    for k in range(2):
        place = tmp_path / f"{k}.parquet"
        cf.local.protect(frame, SCHEMA, place, columns=["x"], noise=0.5, ledger=None)
        seen.append(cf.local.read(place).x.to_numpy())
    # two draws of one row agree with probability 1 / (4 scale) = 6.7e-7, three of 500 pairs hardly ever
    assert np.sum(seen[0] == seen[1]) < 3
    steps = seen[0] * (2**20 - 1)
    assert np.abs(steps - np.rint(steps)).max() < 1e-3


@pytest.mark.parametrize("way", ["table", "stream"])
@pytest.mark.parametrize("zeta", [0.0, 0.25])
def test_each_row_has_the_noise_that_is_told(
    tmp_path: Path, way: str, zeta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Symmetric Laplace of the sd that the file says: sd, shape, a radius that a row's columns share, no share between rows."""
    n, asked = 8_000, {"columns": ["x", "z"], "noise": 2.0, "zeta": zeta, "accept_verbatim_rows": True}
    data = {"x": [0.5] * n, "z": [0.0] * n}
    if way == "table":
        told = cf.local.protect(data, SCHEMA, tmp_path / "p.parquet", ledger=None, seed=4, **asked).protection
        seen = cf.local.read(tmp_path / "p.parquet")
    else:
        monkeypatch.setattr("confide.local.release.SecureNoise", lambda: SimulatedNoise(4))
        # rows without noise are a delta of zeta
        budget = cf.GDP(6.0, 0.5, relation="substitute", trust="local")
        book = cf.Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=budget)
        stream = cf.local.Releaser.open(book, SCHEMA, charge_delta=1e-6, **asked)
        told, seen = stream.planned.protection, stream.extend({**data, "id": list(range(n))}, ids="id")
    drawn = np.column_stack([(seen[name] - data[name][0]) / one.sd for name, one in told.columns.items()])
    bare = (np.abs(drawn) < 1e-5).all(axis=1)
    assert abs(bare.mean() - zeta) <= 4 * sqrt(zeta * (1 - zeta) / n) + 1e-3
    drawn = drawn[~bare]
    # sd 1, E|s| = 1/sqrt(2); |s| of two columns of a row go together, E|s t| = pi/4 * 2/pi * E W = 2/pi, W exponential
    size = np.abs(drawn)
    assert np.allclose(drawn.std(axis=0), 1.0, atol=0.08) and np.allclose(size.mean(axis=0), sqrt(0.5), atol=0.05)
    assert abs((size[:, 0] * size[:, 1]).mean() - 2 / np.pi) < 0.09
    for lag in (1, 2):
        assert np.all(np.abs((drawn[lag:] * drawn[:-lag]).mean(axis=0)) < 5 / sqrt(len(drawn)))


def test_what_is_missing_or_out_of_bounds_has_the_noise_of_all(
    tmp_path: Path,
    recwarn: pytest.WarningsRecorder,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Of the public constant, and of the bound: neither which rows are concerned nor by how much is seen, or how many there are."""
    n = 3_000
    odd = np.repeat([np.nan, np.inf, 1e6, -7.0], n)
    data = {"x": odd, "z": np.zeros(4 * n)}
    told = cf.local.protect(data, SCHEMA, tmp_path / "p.parquet", columns=["x", "z"], noise=0.5, ledger=None).protection
    assert not recwarn.list and not caplog.records and tuple(capfd.readouterr()) == ("", "")
    seen = cf.local.read(tmp_path / "p.parquet")
    for part, value in zip(np.split(seen.x.to_numpy(), 4), (0.5, 0.5, 1.0, 0.0), strict=True):
        drawn = (part - value) / told.columns["x"].sd
        # a Laplace of unit variance: its median has the standard error 1 / sqrt(2 n), its mean size 1 / sqrt(2) that of 1 / sqrt(2 n) too
        assert abs(np.median(drawn)) < 5 / sqrt(2 * n) and abs(np.abs(drawn).mean() - sqrt(0.5)) < 5 / sqrt(2 * n)
        assert np.sum(drawn == 0) < 3


@pytest.mark.parametrize("level", ["attribute", "record"])
def test_the_noise_meets_the_guarantee_at_its_level(level: str) -> None:
    """delta(epsilon) of the level's own function, of record and attribute the larger one, is what was asked for and no less."""
    made = cf.local.plan(SCHEMA, ["x", "z"], level=level, privacy=cf.ApproxDP(1.0, 1e-3))
    shifts = [(one.steps - 1) / float(one.lam) for one in made.protection.columns.values()]
    moved = sqrt(sum(shift**2 for shift in shifts)) if level == "record" else max(shifts)
    assert 0.999e-3 < symmetric_laplace(2, moved).delta(1.0) <= 1e-3
    assert made.statement.unit == level


def test_rows_without_noise_are_in_the_curve() -> None:
    """A record that is published as it is with probability zeta has delta at least that, and 1 - (1 - zeta)(1 - delta) in all."""
    asked = {"columns": ["x", "z"], "noise": 2.0}
    bare = cf.local.plan(SCHEMA, **asked).protection.curves
    some = cf.local.plan(SCHEMA, **asked, zeta=0.05, accept_verbatim_rows=True)
    for level, curve in some.protection.curves.items():
        for epsilon in (0.0, 1.0, 30.0):
            exact = 1 - 0.95 * (1 - bare[level].delta(epsilon))
            assert exact * (1 - 1e-9) <= curve.delta(epsilon) <= exact * (1 + 1e-3)
    assert some.statement.curve == some.protection.curves["record"]


def test_nothing_is_left_of_a_draw_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = _book(tmp_path)

    real = pq.ParquetWriter.write_table

    def broken(file: Any, table: Any, **more: Any) -> Any:
        if table.num_rows == 50:  # what the rehearsal sees is never charged
            raise RuntimeError("a cell said 37.123")
        return real(file, table, **more)

    monkeypatch.setattr("confide.local.files.pq.ParquetWriter.write_table", broken)
    with refuses(cf.errors.ReleaseError) as caught:
        cf.local.protect(
            _frame(50), SCHEMA, tmp_path / "p.parquet", columns=["x"], noise=2.0, ledger=book, charge_delta=1e-6
        )
    assert "37.123" not in str(caught.value) and caught.value.__cause__ is None
    assert sorted(path.suffix for path in tmp_path.iterdir() if path.suffix == ".parquet") == []
    assert _kinds(book) == ["open", "charge"]


@pytest.mark.parametrize(
    "asked",
    [
        {"columns": ["y"], "noise": 0.5},
        {"columns": ["g"], "noise": 0.5},
        {"columns": ["x"], "public": ["x"], "noise": 0.5},
        {"columns": ["x"]},
        {"columns": ["x"], "noise": 0.5, "privacy": cf.ApproxDP(1.0, 1e-3)},
        {"columns": ["x", "z"], "privacy": cf.PureDP(1.0)},
        {"columns": ["x"], "privacy": cf.GDP(1.0)},
        {"columns": ["x"], "noise": 0.5, "zeta": 0.1},
        {"columns": ["x"], "noise": 0.5, "zeta": 1.0},
        {"columns": ["x"], "noise": 0.5, "level": "person"},
        {"columns": [], "noise": 0.5},
        {"columns": ["x"], "noise": -1.0},
        {"columns": ["w"], "noise": 0.5},
    ],
)
def test_what_is_refused_before_anything_is_read(asked: dict[str, Any]) -> None:
    with refuses(cf.ConfideError):
        cf.local.plan(SCHEMA, **asked)


@pytest.mark.parametrize(
    ("noise", "zeta", "words"),
    [(0.94, 0.1, "at least as good"), (0.5, 0.1, "1.92 times"), (1.4, 0.05, "at least as good")],
)
def test_the_plan_names_the_raw_sample(noise: float, zeta: float, words: str) -> None:
    """Per row the mean of a uniform column has variance 1/12 + (1 - zeta) sd^2 here, 1/(12 zeta) in a raw sample."""
    said = [
        line
        for line in cf.local.plan(SCHEMA, ["x"], noise=noise, zeta=zeta, accept_verbatim_rows=True).lines()
        if "raw sample" in line
    ]
    assert len(said) == 1 and words in said[0] and f"{zeta**-0.5:.3g} times" in said[0]
    assert not any("raw sample" in line for line in cf.local.plan(SCHEMA, ["x"], noise=noise).lines())


def test_a_seed_is_never_charged(tmp_path: Path) -> None:
    book = _book(tmp_path)
    with refuses(cf.errors.PrivacyError):
        cf.local.protect(
            _frame(10), SCHEMA, tmp_path / "p.parquet", columns=["x"], noise=2.0, ledger=book, charge_delta=1e-6, seed=1
        )
    assert _kinds(book) == ["open"] and not (tmp_path / "p.parquet").exists()


def test_ledgers_of_other_terms_are_refused(tmp_path: Path) -> None:
    central = cf.Ledger.create(tmp_path / "c.db", dataset="survey", budget=cf.GDP(6.0, relation="substitute"))
    with refuses(cf.errors.PlanError):
        cf.local.protect(_frame(10), SCHEMA, tmp_path / "p.parquet", columns=["x"], noise=2.0, ledger=central)
    with refuses(cf.errors.PlanError):
        cf.local.protect(
            _frame(10),
            SCHEMA,
            tmp_path / "p.parquet",
            columns=["x"],
            noise=2.0,
            level="attribute",
            ledger=_book(tmp_path),
        )
    poor = _book(tmp_path, "attribute", mu=0.01)
    with pytest.raises(cf.BudgetExceeded):
        cf.local.protect(
            _frame(10), SCHEMA, tmp_path / "p.parquet", columns=["x"], noise=0.3, level="attribute", ledger=poor
        )
    assert not (tmp_path / "p.parquet").exists()


@pytest.mark.parametrize(
    "facts",
    [
        {"unit": "household", "rows_per_unit": 5},
        {"rows_per_unit": 5},
        {"unit": "person"},
        {"unit": cf.Unit("person_id")},
    ],
)
@pytest.mark.parametrize("charged", [True, False])
def test_a_schema_that_protects_more_than_a_row_is_refused(
    tmp_path: Path, facts: dict[str, Any], charged: bool
) -> None:
    """No statement "one record replaced" stands for a household, in a ledger or without one; what works is in the words."""
    book = _book(tmp_path)
    schema = cf.Schema(dict(SCHEMA.columns), dataset="survey", **facts)
    place, frame = tmp_path / "p.parquet", _frame(10).assign(person_id=1)
    asked: dict[str, Any] = {"columns": ["x"], "noise": 2.0}

    def told(schema: Any) -> Any:
        return cf.local.protect(frame, schema, place, ledger=book if charged else None, charge_delta=1e-6, **asked)

    for call in (
        lambda: told(schema),
        lambda: cf.local.plan(schema, **asked),
        lambda: cf.local.Releaser.open(book, schema, charge_delta=1e-6, **asked),
    ):
        with refuses(cf.errors.PrivacyError):
            call()
    assert _kinds(book) == ["open"] and not place.exists()
    assert str(told(cf.Schema(dict(SCHEMA.columns), dataset="survey", unit="record")).statement).endswith("local)")


@pytest.mark.parametrize(
    "other", [{"unit": "household"}, {"unit": "attribute"}, {"relation": "add-remove"}], ids=lambda one: next(iter(one))
)
def test_a_guarantee_of_another_unit_or_relation_is_not_overheard(other: dict[str, Any]) -> None:
    with refuses(cf.errors.PrivacyError):
        cf.local.plan(SCHEMA, ["x"], privacy=cf.ApproxDP(1.0, 1e-3, **other))
    said = cf.ApproxDP(1.0, 1e-3, relation="substitute", unit="attribute", trust="local")
    assert cf.local.plan(SCHEMA, ["x"], level="attribute", privacy=said).statement.unit == "attribute"


def test_files_that_do_not_say_how_they_were_protected(tmp_path: Path) -> None:
    _frame(10).to_parquet(tmp_path / "bare.parquet")
    _frame(10).to_csv(tmp_path / "bare.csv")
    for name in ("bare.parquet", "bare.csv", "none.parquet"):
        with refuses(cf.errors.ReleaseError):
            cf.local.fit(tmp_path / name, "y ~ x")
    told = Protection({"x": Noised(0, 1, 101, Fraction(50))})
    for break_ in ({"format": 9}, {"zeta": "2.0"}, {"columns": {}}, {"columns": {"x": {"low": "0x0p+0"}}}):
        with pytest.raises(cf.errors.ReleaseError):
            Protection.from_json(json.dumps(json.loads(told.to_json()) | break_))


# streams ----------------------------------------------------------------------------------------------------------------


def _stream(book: cf.Ledger, **more: Any) -> Any:
    return cf.local.Releaser.open(book, SCHEMA, columns=["x"], noise=2.0, charge_delta=1e-6, **more)


def test_an_id_has_one_output_whatever_its_record_says(tmp_path: Path) -> None:
    book = _book(tmp_path)
    stream = _stream(book)
    spent = book.show().spent
    first = stream.extend({"id": ["a", "b", "a"], "x": [0.1, 0.2, 0.9]}, ids="id")
    assert first.x[0] == first.x[2] != first.x[1]
    again = _stream(cf.Ledger.open(book.path)).extend({"id": ["b", "c", "a"], "x": [0.7, 0.2, 0.1]}, ids="id")
    assert again.x[0] == first.x[1] and again.x[2] == first.x[0]
    assert book.show().spent == spent, "a stream that goes on is charged once"
    with refuses(cf.errors.PlanError):
        stream.new_version()
    second = stream.new_version(allow_update=True)
    assert second.planned.protection.version == 2 and book.show().spent != spent
    assert not np.any(
        second.extend({"id": ["a", "b"], "x": [0.1, 0.2]}, ids="id").x.to_numpy() == first.x[:2].to_numpy()
    )
    assert book.verify().ok


def test_rows_stay_in_place_however_their_ids_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids are stored in their order, some at a time; what comes back is in the order of the rows."""
    monkeypatch.setattr("confide.local.release.ROWS", 16)
    monkeypatch.setattr("confide.local.release._CELLS", 100)
    generator = np.random.default_rng(5)
    ids = generator.integers(0, 150, 400)  # most come more than once, and 11 sorts before 2
    x = generator.integers(0, 2, 400).astype(float)
    with warns(UserWarning):
        book = _book(tmp_path, mu=500.0)
    stream = cf.local.Releaser.open(book, SCHEMA, columns=["x"], noise=0.01, charge_delta=1e-6)
    told = stream.extend({"id": ids, "x": x}, ids="id").x.to_numpy()
    frame = pd.DataFrame({"id": ids, "x": x, "told": told})
    # noise of a hundredth of the width: the output is that of the first row of its id
    assert np.abs(told - frame.groupby("id").x.transform("first")).max() < 0.5
    assert (frame.groupby("id").told.nunique() == 1).all()
    back = stream.extend({"id": ids[::-1], "x": 1 - x}, ids="id").x.to_numpy()
    np.testing.assert_array_equal(back[::-1], told)
    assert book.verify().ok and _kinds(book).count("outputs") > 4


def test_other_parameters_are_another_stream(tmp_path: Path) -> None:
    book = _book(tmp_path)
    one = _stream(book).extend({"id": [1], "x": [0.3]}, ids="id")
    other = cf.local.Releaser.open(book, SCHEMA, columns=["x"], noise=1.0, charge_delta=1e-6)
    assert other.extend({"id": [1], "x": [0.3]}, ids="id").x[0] != one.x[0]
    assert _kinds(book) == ["open", "charge", "outputs", "charge", "outputs"]


def test_a_table_does_not_pay_for_a_stream(tmp_path: Path) -> None:
    """Of one charge a record has one noisy output, not one in the table and another in the stream."""
    book = _book(tmp_path)
    place = tmp_path / "p.parquet"
    cf.local.protect({"x": [0.3]}, SCHEMA, place, columns=["x"], noise=2.0, charge_delta=1e-6, ledger=book)
    paid = book.show().units["spent_amount"]
    _stream(book).extend({"id": [1], "x": [0.3]}, ids="id")
    assert book.show().units["spent_amount"] > 1.99 * paid > 0


def test_a_stream_is_of_the_data_set_that_paid(tmp_path: Path) -> None:
    book = _book(tmp_path)
    _stream(book, stream="s")
    other = cf.Schema({"x": cf.Numeric(0, 1, on_missing=0.5)}, dataset="other")
    with refuses(cf.errors.PlanError):
        cf.local.Releaser.open(book, other, columns=["x"], noise=2.0, charge_delta=1e-6, stream="s")


def test_row_groups_do_not_tell_where_rows_are_from(tmp_path: Path) -> None:
    """Files of a source are pieces, and which of them a row is from is no published column."""
    for name, rows in (("a", 70_000), ("b", 30_000), ("c", 40_000)):
        pd.DataFrame({"x": np.full(rows, 0.5)}).to_parquet(tmp_path / f"{name}.parquet")
    files = [str(tmp_path / f"{name}.parquet") for name in "abc"]
    place = tmp_path / "p.parquet"
    cf.local.protect(files, SCHEMA, place, columns=["x"], noise=2.0, ledger=None)
    told = pq.ParquetFile(place).metadata
    assert [told.row_group(k).num_rows for k in range(told.num_row_groups)] == [65_536, 65_536, 8_928]


def test_ids_are_canonical_and_needed(tmp_path: Path) -> None:
    stream = _stream(_book(tmp_path))
    a = stream.extend(pd.DataFrame({"id": [7, 8], "x": [0.1, 0.2]}), ids="id")
    b = stream.extend(pd.DataFrame({"id": ["8", "7.0"], "x": [0.1, 0.2]}), ids="id")
    assert a.x.tolist() == b.x.tolist()[::-1]
    with refuses(cf.errors.SourceError):
        stream.extend(pd.DataFrame({"id": [1.0, np.nan], "x": [0.1, 0.2]}), ids="id")


def test_outputs_that_nobody_paid_for(tmp_path: Path) -> None:
    book = _book(tmp_path)
    with refuses(cf.errors.PlanError):
        book.outputs("0" * 64).keep([b"a"], lambda at: [b"x" for _ in at])


def test_a_stream_that_goes_on_locks_nothing_until_it_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = _book(tmp_path)
    _stream(book).extend({"id": ["a"], "x": [0.1]}, ids="id")

    def lock(*_: Any, **__: Any) -> Any:
        raise AssertionError("a lock was taken")

    monkeypatch.setattr(type(book._store), "writing", lock)
    made = _stream(book).planned.named("local stream 1")
    assert book.charged(made) and not book.charged("0" * 64)
    book.outputs(made)


def _as_folder(place: Path, frame: pd.DataFrame) -> Any:
    place.mkdir()
    return frame


def _as_its_own_input(place: Path, frame: pd.DataFrame) -> Any:
    frame.to_parquet(place)
    return place


def _as_a_link_to_its_input(place: Path, frame: pd.DataFrame) -> Any:
    frame.to_parquet(place.with_name("records.parquet"))
    place.symlink_to(place.with_name("records.parquet"))
    return place.with_name("records.parquet")


@pytest.mark.parametrize("way", [_as_folder, _as_its_own_input, _as_a_link_to_its_input])
def test_a_place_that_cannot_take_the_table_costs_nothing(tmp_path: Path, way: Any) -> None:
    book, place = _book(tmp_path), tmp_path / "p.parquet"
    records = way(place, _frame(50))
    before = sorted(tmp_path.iterdir())
    with refuses(cf.errors.PlanError):
        cf.local.protect(records, SCHEMA, place, columns=["x"], noise=0.5, ledger=book, charge_delta=1e-4, force=True)
    assert _kinds(book) == ["open"]
    assert sorted(tmp_path.iterdir()) == before


def test_a_disk_without_room_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    book = _book(tmp_path)
    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with refuses(cf.errors.FileError):
        cf.local.protect(
            _frame(50), SCHEMA, tmp_path / "p.csv", columns=["x"], noise=0.5, ledger=book, charge_delta=1e-4
        )
    assert _kinds(book) == ["open"]
    assert not list(tmp_path.glob("*.csv"))


def test_a_table_that_cannot_be_protected_here_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*_: Any) -> Any:
        raise AttributeError("module 'pyarrow' has no attribute 'string_view'")

    book = _book(tmp_path)
    monkeypatch.setattr(Labels, "text", lacking)
    with refuses(cf.errors.PlanError):
        cf.local.protect(
            _frame(50),
            SCHEMA,
            tmp_path / "p.csv",
            columns=["x"],
            public=["g"],
            noise=0.5,
            ledger=book,
            charge_delta=1e-4,
        )
    assert _kinds(book) == ["open"]


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_room_that_was_set_aside_is_given_back(tmp_path: Path, name: str) -> None:
    book = _book(tmp_path)
    cf.local.protect(_frame(300), SCHEMA, tmp_path / name, columns=["x"], noise=0.5, ledger=book, charge_delta=1e-4)
    assert len(cf.local.read(tmp_path / name)) == 300
    assert (tmp_path / name).stat().st_size < 300 * 26 + 4_096
