"""The reproduction site: catalogue, plan, verdicts by item, and two smoke runs that give the same bytes."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from confide.cli import app
from confide_lab.errata import names as errata
from confide_lab.experiment import Block, Experiment, Layout, Printed, Quantity, run
from confide_lab.experiments import load, names
from confide_lab.papers.catalogue import PAPERS, Item, Reason
from confide_lab.papers.plan import MODES, experiments_of, perform, units
from confide_lab.papers.site import write
from confide_lab.papers.tally import Number, by_chance, numbers_of, restored_of, share_of, status_of, unexplained

ITEMS = [(paper.key, item) for paper in PAPERS.values() for item in paper.items]


@pytest.mark.parametrize(("key", "item"), ITEMS, ids=[f"{key} {item.number}" for key, item in ITEMS])
def test_an_item_leads_somewhere(key: str, item: Item) -> None:
    assert item.experiment or item.show or item.cannot or item.holds, "neither run, nor shown, nor said why not"
    if item.experiment:
        experiment = load(item.experiment)
        assert set(item.blocks) <= {block.name for block in experiment.blocks}
    for name in re.findall(r"confide lab errata ([\w.-]+)", item.show):
        assert name in errata()
    for path in re.findall(r"tests/[\w/]+\.py", item.show):
        assert (Path(__file__).resolve().parents[2] / path).is_file()


def test_every_experiment_with_printed_numbers_is_an_item() -> None:
    mine = {item.experiment for _, item in ITEMS}
    printed = {name for name in names() if any(block.printed for block in load(name).blocks)}
    # these hold this project's page to its own numbers
    assert printed - {"survey.real", "survey.designs", "survey.clusters"} <= mine, printed - mine


@pytest.mark.parametrize("name", sorted({item.experiment for _, item in ITEMS if item.experiment}))
def test_every_printed_number_stands_in_a_layout(name: str) -> None:
    """With the letter or restored: no printed number is out of sight."""
    experiment = load(name)
    item = Item("x", "y", name)
    shown = {
        (n.block, *n.record["setting"].values(), n.record["method"], n.record["quantity"])
        for n in numbers_of(item, experiment, [])
    }
    for block in experiment.blocks:
        if block.layouts and name not in ("zil.table1", "zil.table2", "zil.table3", "binagg.table1"):
            assert all((block.name, *key) in shown for key in block.printed), block.name
        elif block.printed:
            values = {printed.value for printed in block.printed.values()}
            kept = {n.record["paper"] for n in numbers_of(item, experiment, []) if n.block == block.name}
            # slopes' root mean squares are ours, beside each slope's printed number
            assert len(values & kept) >= 0.75 * len(values)


def test_the_plan_keeps_its_promise_and_is_the_same_each_time() -> None:
    for mode, most in (("smoke", 12.0), ("quick", 1_200.0)):
        chosen = units(mode)
        assert sum(unit.seconds for unit in chosen) <= most, mode
        assert [(u.place, u.replications) for u in chosen] == [(u.place, u.replications) for u in units(mode)]
    full = {unit.place: unit for unit in units("full")}
    assert full["binagg.table1/versions/binagg_literal"].replications == 2000
    assert MODES["full"] is None and experiments_of(PAPERS["zil"])[0].startswith("zil.")


def measure(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    return {"x": float(generator.normal(at["n"], 0.1))}


TOY = Experiment(
    "toy.papers",
    "A table",
    (
        Block(
            "only",
            {"n": (1, 2, 3)},
            ("a", "b"),
            measure,
            (Quantity("x"),),
            20,
            printed={(n, "a", "x"): Printed(value, 2, 100) for n, value in ((1, 1.0), (2, 9.0), (3, 3.0))},
            layouts=(Layout(("n",), ("method",), {"method": ("a",)}, "x", "Table 9"),),
        ),
    ),
    ("nobody",),
)


def test_an_item_counts_each_printed_number_once_and_says_why_it_differs(tmp_path: Path) -> None:
    item = Item("Table 9", "numbers", "toy.papers", reasons=(Reason("a digit is missing", {"n": (2,)}),))
    found = run(TOY, tmp_path, progress=False, only={"n": ["1", "2"]})
    numbers = numbers_of(item, TOY, found)
    assert [(n.word, n.reason) for n in numbers] == [
        ("agrees", ""),
        ("differs", "a digit is missing"),
        ("not run", "not within the time of this run: one replication of every setting takes 1.5 s"),
    ]
    assert share_of(numbers).counts == {"agrees": 1, "differs": 1, "undetermined": 0, "not run": 1}
    assert status_of(item, numbers, True) == "does not reproduce: 1 of 3 differ"
    assert status_of(Item("T", "s", cannot="withheld"), [], False) == "cannot be run: withheld"
    assert status_of(Item("T", "s", holds="fails"), [], False) == "fails"


def test_a_restored_table_takes_the_place_of_the_letters_numbers(tmp_path: Path) -> None:
    """Once each: what no restored table shows stays as it is to the letter, and both counts are of the same numbers."""
    item = Item("Table 9", "numbers", "toy.papers")
    letter = TOY.blocks[0]
    again = replace(
        letter, name="again", grid={"n": (2, 3), "box": ("near",)},
        printed={(n, "near", "a", "x"): Printed(value, 2, 100) for n, value in ((2, 9.0), (3, 3.0))},
        layouts=(Layout(("n",), ("method",), {"method": ("a",)}, "x", "Table 9, in a box", "restored"),),
        measure=measure_in_a_box,
    )  # fmt: skip
    far = replace(letter, grid={**letter.grid, "box": ("far",)},
                  printed={(n, "far", "a", "x"): value for (n, *_), value in letter.printed.items()})  # fmt: skip
    both = replace(TOY, blocks=(far, again))
    found = numbers_of(item, both, run(both, tmp_path, progress=False))
    assert len(found) == 5 and share_of(found).counts["differs"] == 1
    assert share_of(found, "restored").counts == {"agrees": 3, "differs": 0, "undetermined": 0, "not run": 0}
    assert sorted(one.layout for one in restored_of(found)) == ["Table 9", "Table 9, in a box", "Table 9, in a box"]
    assert status_of(item, found, True) == (
        "as printed it does not reproduce: 1 of 3 differ; restored: 3 agree, 0 differ"
    )
    alone = [one for one in found if one.reading == "letter"]
    assert not restored_of(alone) and status_of(item, alone, True) == "does not reproduce: 1 of 3 differ"


def measure_in_a_box(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    return {"x": float(generator.normal(9.0 if at["n"] == 2 else at["n"], 0.1))}


def test_what_no_reason_fits_is_chance_where_it_is_rare_and_near(tmp_path: Path) -> None:
    """Of 40 right numbers two outside their bands are no news; six are, and so is one that is far away."""

    def found(outside: int, far: float) -> list[Number]:
        item = Item("Table 9", "numbers", "toy.papers")
        made = []
        for k in range(40):
            away = far if k < outside else 0.0
            record = {
                "setting": {"n": k},
                "method": "a",
                "quantity": "x",
                "value": 1.0 + away,
                "paper": 1.0,
                "allowed": 0.1,
                "error": 0.05,
            }
            made.append(Number(item, "only", "Table 9", "letter", record, "differs" if away else "agrees", ""))
        return by_chance(made)

    said = "chance: 2 of 40 numbers without another reason are outside, where 5% are expected"
    assert [one.reason for one in found(2, 0.12)][:3] == [said, said, ""]
    assert unexplained(found(2, 0.12)) == 0 and unexplained(found(7, 0.12)) == 7 and unexplained(found(1, 0.3)) == 1
    exact = [replace(one, record={**one.record, "error": 0.0}) for one in found(2, 0.12)]
    assert unexplained(by_chance([replace(one, reason="") for one in exact])) == 2


def test_the_site_is_the_same_twice_and_runs_in_processes(tmp_path: Path) -> None:
    chosen = [unit for unit in units("smoke", ("zil",)) if unit.seconds < 0.01]
    sites = []
    for jobs in (1, 2):
        out = tmp_path / f"out{jobs}"
        perform(chosen, out, jobs=jobs, resume=True, note=lambda text: None, done=lambda own: None)
        shares = write(tmp_path / f"site{jobs}", out, "smoke", ("zil",))
        sites.append(
            {
                path.relative_to(tmp_path / f"site{jobs}"): path.read_bytes()
                for path in (tmp_path / f"site{jobs}").rglob("*")
                if path.is_file()
            }
        )
    assert sites[0] == sites[1]
    assert shares["zil"]["printed"] > 300
    pages = [text.decode() for place, text in sites[0].items() if place.suffix == ".html"]
    assert len(pages) > 5 and all('name="viewport"' in page and "<script" not in page for page in pages)
    rows = list(csv.DictReader(sites[0][Path("data/numbers.csv")].decode().splitlines()))
    assert {row["verdict"] for row in rows} <= {"agrees", "differs", "undetermined", "not run"}
    for page in pages:
        for target in re.findall(r'(?:href|src)="([^"#]+)"', page):
            assert Path(target) in sites[0], target


@pytest.mark.parametrize(("seconds", "count"), [(0.5, 25), pytest.param(MODES["smoke"], 30, marks=pytest.mark.long)])
def test_the_smoke_run_makes_the_whole_site(
    seconds: float, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In half a second all but five experiments run, without their dearest methods."""
    monkeypatch.setitem(MODES, "smoke", seconds)
    assert len({unit.experiment.name for unit in units("smoke")}) == count
    site = tmp_path / "site"
    done = CliRunner().invoke(app, ["lab", "papers", "--smoke", "-o", str(site), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    index = (site / "index.html").read_text()
    for paper in PAPERS.values():
        assert f"{paper.key}.html" in index and (site / f"{paper.key}.html").is_file()
    assert "printed numbers" in done.stdout
    assert CliRunner().invoke(app, ["lab", "papers", "--smoke", "--quick"]).exit_code != 0
