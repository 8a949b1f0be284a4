"""Tests, distributions and Table One where they may fail: `confide lab bench tables_hostile [--replications 200] [--only ranks]`.

Real columns with ties, atoms and long tails, groups of unequal size and spread, rare levels, 100 to 10,000 records, both relations, both
readings. Null hypotheses are made true: values and labels are drawn apart from each other. Each answer is that of the method's own plan,
gate and reader with simulated noise, beside scipy's on the same sample.

Claims, by the rule of `tables_judge.rule`: a test at 5 % rejects at most 7 % of true null hypotheses; an interval whose result stands by it
covers at least .94.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from scipy import stats

import confide as cf
from confide.ask.tests import asked_of
from confide.core import ResultOptions, seal
from confide.methods.quantiles.method import Quantiles
from confide.methods.regression.least_squares.correlation import Correlation
from confide.methods.tables.counts import Counts
from confide.methods.tables.table_one.method import TableOne
from confide.methods.tests.rank import Kruskal, MannWhitney, Wilcoxon
from confide.noise import SimulatedNoise
from confide_lab.benchmarks.tables_judge.rule import held
from confide_lab.benchmarks.tables_judge.sets import case, missing

__all__ = ["main"]

OUT = Path("out/bench")
SIZE, LEAST = 0.07, 0.94
#: Set, column, and the attribute whose groups are compared.
COLUMNS = (
    ("adult", "capital_gain", "sex"),
    ("adult", "hours_per_week", "sex"),
    ("default_of_credit_card_clients", "pay_amt1", "default_payment_next_month"),
    ("bike_sharing_hourly", "casual", "workingday"),
    ("wine_quality", "alcohol", "color"),
)
SETTINGS = ((100, 1.0, "add-remove"), (500, 0.3, "add-remove"), (5_000, 0.3, "substitute"), (10_000, 1.0, "add-remove"))

Array = np.ndarray
_SIDES: tuple[Any, Any] = ("left", "right")
#: Name of a number -> (what counts as a hit, or None where the result does not stand by it; the same without privacy).
Hits = Mapping[str, tuple[bool | None, bool | None]]


@dataclass(frozen=True)
class Check:
    """One design: a size ("rejected") or a coverage ("covered") of each number that `measure` gives."""

    name: str
    claim: str
    measure: Callable[[int, float, str, np.random.Generator], Hits]


def _released(method: Any, frame: Any, schema: Any, mu: float, relation: str, g: np.random.Generator) -> Any:
    n = len(frame) if relation == "substitute" else None
    plan = cf.plan(method, schema, cf.GDP(mu, relation=relation), n=n)
    return method.infer(seal(method, cf.read(frame, schema), plan, SimulatedNoise(int(g.integers(2**31)))))


def _rejects(result: Any) -> bool | None:
    p = float(result.pvalue)
    return None if np.isnan(p) else p < 0.05


def _values(name: str, column: str) -> Array:
    one = case(name)
    return one.frame[column].clip(*one.recipe.columns[column]).dropna().to_numpy(dtype=float)


def _two(name: str, column: str, split: float) -> Callable[..., Hits]:
    """Mann and Whitney's test where values and labels are independent, a share `split` of the records in the first group."""
    values, bounds = _values(name, column), case(name).recipe.columns[column]
    schema = cf.Schema({"y": cf.Numeric(*bounds), "g": cf.Categorical(["a", "b"])})

    def measure(n: int, mu: float, relation: str, g: np.random.Generator) -> Hits:
        y, first = g.choice(values, n), g.random(n) < split
        frame = pd.DataFrame({"y": y, "g": np.where(first, "a", "b")})
        result = _released(MannWhitney("y ~ g"), frame, schema, mu, relation, g)
        plain = stats.mannwhitneyu(y[first], y[~first]).pvalue < 0.05 if 0 < first.sum() < n else None
        return {f"{column}, {split:.0%}": (_rejects(result), plain)}

    return measure


def _effect(name: str, column: str, by: str) -> Callable[..., Hits]:
    """Whether the interval of P(Y1 > Y2) - 1/2 of the real groups covers that of the whole table."""
    one = case(name)
    frame = one.frame[[column, by]].dropna()
    schema = cf.Schema({column: one.schema()[column], by: one.schema()[by]})
    levels = one.levels(by)
    parts = [np.sort(frame.loc[frame[by] == level, column].to_numpy(dtype=float)) for level in levels]
    below, upto = (np.searchsorted(parts[1], parts[0], side=side) for side in _SIDES)
    truth = float((below + upto).mean() / 2 / len(parts[1]) - 0.5)

    def measure(n: int, mu: float, relation: str, g: np.random.Generator) -> Hits:
        sample = frame.iloc[g.integers(0, len(frame), n)].reset_index(drop=True)
        result = _released(MannWhitney(f"{column} ~ {by}"), sample, schema, mu, relation, g)
        low, high = (float(end) for end in result.conf_int().iloc[0])
        own = [sample.loc[sample[by] == level, column] for level in levels]
        return {f"{column} by {by}": (None if np.isnan(low) else low <= truth <= high, _brunner(own[0], own[1], truth))}

    return measure


def _brunner(one: Any, other: Any, truth: float) -> bool | None:
    """Whether the interval of Brunner and Munzel covers, from their variance."""
    if min(len(one), len(other)) < 3:
        return None
    both = stats.rankdata(np.concatenate([one, other]))
    n, m = len(one), len(other)
    inner, outer = both[:n] - stats.rankdata(one), both[n:] - stats.rankdata(other)
    estimate = inner.mean() / m - 0.5
    error = np.sqrt(inner.var(ddof=1) / m**2 / n + outer.var(ddof=1) / n**2 / m)
    return bool(abs(estimate - truth) <= 1.96 * error)


def _several(name: str, column: str) -> Callable[..., Hits]:
    """Kruskal and Wallis' test of four groups of 70, 20, 8 and 2 % of the records, of one law."""
    values, bounds = _values(name, column), case(name).recipe.columns[column]
    schema = cf.Schema({"y": cf.Numeric(*bounds), "g": cf.Categorical(list("abcd"))})

    def measure(n: int, mu: float, relation: str, g: np.random.Generator) -> Hits:
        y, labels = g.choice(values, n), g.choice(list("abcd"), n, p=[0.7, 0.2, 0.08, 0.02])
        frame = pd.DataFrame({"y": y, "g": labels})
        result = _released(Kruskal("y ~ g"), frame, schema, mu, relation, g)
        groups = [y[labels == label] for label in "abcd" if (labels == label).any()]
        return {column: (_rejects(result), bool(stats.kruskal(*groups).pvalue < 0.05))}

    return measure


def _signed(name: str, column: str) -> Callable[..., Hits]:
    """Wilcoxon's test of the difference of two records, which is symmetric about 0."""
    values, (low, high) = _values(name, column), case(name).recipe.columns[column]
    schema = cf.Schema({"d": cf.Numeric(low - high, high - low)})

    def measure(n: int, mu: float, relation: str, g: np.random.Generator) -> Hits:
        d = g.choice(values, n) - g.choice(values, n)
        result = _released(Wilcoxon("d"), pd.DataFrame({"d": d}), schema, mu, relation, g)
        return {column: (_rejects(result), bool(stats.wilcoxon(d).pvalue < 0.05) if d.any() else None)}

    return measure


def _crossed(name: str, one: str, other: str, given: str | None = None) -> Callable[..., Hits]:
    """Independence of two attributes, drawn apart within the levels of a third."""
    own = case(name)
    names = [one, other, *([given] if given else [])]
    whole, schema = own.frame[names], cf.Schema({key: own.schema()[key] for key in names})
    formula, ask = asked_of("chi2_contingency", f"{one} * {other}", given=given)
    method = Counts(formula, inference="population")

    def measure(n: int, mu: float, relation: str, g: np.random.Generator) -> Hits:
        frame = whole.iloc[g.integers(0, len(whole), n)].reset_index(drop=True)
        if given is None:
            frame[other] = g.permutation(whole[other].to_numpy()[g.integers(0, len(whole), n)])
        else:
            for level in frame[given].unique():
                at = np.flatnonzero(frame[given] == level)
                pool = whole.loc[whole[given] == level, other].to_numpy()
                frame.loc[at, other] = g.choice(pool, len(at))
        result = ask(_released(method, frame, schema, mu, relation, g))
        table = pd.crosstab(frame[one], frame[other])
        plain = bool(stats.chi2_contingency(table, correction=False).pvalue < 0.05) if given is None else None
        return {f"{one} * {other}{f' given {given}' if given else ''}": (_rejects(result), plain)}

    return measure


def _fitted(name: str, attribute: str) -> Callable[..., Hits]:
    """Fit to the shares of the whole table."""
    own = case(name)
    schema = cf.Schema({attribute: own.schema()[attribute]})
    shares = own.frame[attribute].value_counts(normalize=True).reindex(own.levels(attribute))
    formula, ask = asked_of("chisquare", attribute, f_exp=shares.tolist())
    method = Counts(formula, inference="population")

    def measure(n: int, mu: float, relation: str, g: np.random.Generator) -> Hits:
        sample = own.frame[[attribute]].iloc[g.integers(0, len(own.frame), n)].reset_index(drop=True)
        result = ask(_released(method, sample, schema, mu, relation, g))
        seen = sample[attribute].value_counts().reindex(shares.index).fillna(0.0)
        return {attribute: (_rejects(result), bool(stats.chisquare(seen, n * shares).pvalue < 0.05))}

    return measure


def _trend(rate: float, skewed: bool) -> Callable[..., Hits]:
    """No trend of a rare case over a dose of five levels."""
    doses = [0.7, 0.2, 0.07, 0.02, 0.01] if skewed else [0.2] * 5
    schema = cf.Schema({"case": cf.Categorical(["no", "yes"]), "dose": cf.Categorical(list("01234"))})
    formula, ask = asked_of("trend", "case ~ dose", scores=[0, 1, 2, 3, 10], level="yes")
    method = Counts(formula, inference="population")

    def measure(n: int, mu: float, relation: str, g: np.random.Generator) -> Hits:
        dose, hit = g.choice(5, n, p=doses), g.random(n) < rate
        frame = pd.DataFrame({"case": np.where(hit, "yes", "no"), "dose": dose.astype(str)})
        result = ask(_released(method, frame, schema, mu, relation, g))
        x = np.array([0, 1, 2, 3, 10])[dose]
        spread = hit.std() * x.std()
        plain = abs(np.cov(hit, x)[0, 1]) / spread * np.sqrt(n) > 1.96 if spread > 0 else None
        return {
            f"rate {rate:g}{', skewed doses' if skewed else ''}": (
                _rejects(result),
                None if plain is None else bool(plain),
            )
        }

    return measure


def _correlated(name: str, one: str, other: str) -> Callable[..., Hits]:
    """Whether the interval of a correlation covers that of the whole table."""
    own = case(name)
    whole = own.frame[[one, other]].dropna()
    schema = cf.Schema({key: own.schema()[key] for key in (one, other)})
    truth = float(np.corrcoef(whole[one], whole[other])[0, 1])

    def measure(n: int, mu: float, relation: str, g: np.random.Generator) -> Hits:
        sample = whole.iloc[g.integers(0, len(whole), n)].reset_index(drop=True)
        result = _released(Correlation(f"{one} + {other}"), sample, schema, mu, relation, g)
        told = None
        if result.status == "valid":
            low, high = result.conf_int().iloc[0]
            told = bool(low <= truth <= high)
        r = float(np.corrcoef(sample[one], sample[other])[0, 1])
        plain = abs(np.arctanh(r) - np.arctanh(truth)) <= 1.96 / np.sqrt(n - 3)
        return {f"{one}, {other}": (told, bool(plain))}

    return measure


def _distributed(name: str, column: str, by: str) -> Callable[..., Hits]:
    """Band, pointwise distribution function, quartiles by both readings, their distance, and the difference of medians."""
    one = case(name)
    frame = one.frame[[column, by]].dropna()
    schema = cf.Schema({column: one.schema()[column], by: one.schema()[by]})
    levels = one.levels(by)
    method = Quantiles(f"{column} ~ {by}")
    q = np.array([0.25, 0.5, 0.75])

    def ranks(of: pd.DataFrame) -> dict[str, Array]:
        groups = {"": of[column], **{f"{by}={level}": of.loc[of[by] == level, column] for level in levels}}
        return {
            key: np.quantile(v, q, method="inverted_cdf") if len(v) else np.full(3, np.nan) for key, v in groups.items()
        }

    truth, values = ranks(frame), np.sort(frame[column].to_numpy(dtype=float))

    def measure(n: int, mu: float, relation: str, g: np.random.Generator) -> Hits:
        sample = frame.iloc[g.integers(0, len(frame), n)].reset_index(drop=True)
        plan = cf.plan(method, schema, cf.GDP(mu, relation=relation), n=n if relation == "substitute" else None)
        release = seal(method, cf.read(sample, schema), plan, SimulatedNoise(int(g.integers(2**31))))
        result: Any = method.infer(release)
        if result.status != "valid":
            return {}
        records: Any = method.table(release, method.about(schema), ResultOptions(inference="dataset"))
        found: dict[str, tuple[bool | None, bool | None]] = {}
        for words, own, aims in (("population", result, truth), ("dataset", records, ranks(sample))):
            table, aim = own.to_frame(), np.concatenate(list(aims.values()))
            inside = (table["ci_low"].to_numpy() <= aim) & (aim <= table["ci_high"].to_numpy())
            for k, ok in enumerate((table["flags"] == "") & np.isfinite(aim)):
                found[f"quartile, {words}, {table.index[k]}"] = (bool(inside[k]) if ok else None, None)
        cdf = result.cdf()
        edges = np.asarray(result.groups[0].bins.edges[1:])
        below = np.searchsorted(values, edges, side="left") / len(values)
        below[-1] = 1.0
        held_ = (cdf["band_low"].to_numpy() <= below + 1e-12) & (below <= cdf["band_high"].to_numpy() + 1e-12)
        found["band"] = (bool(held_.all()), None)
        at = np.searchsorted(below, q)
        own_cdf = (cdf["ci_low"].to_numpy() <= below + 1e-12) & (below <= cdf["ci_high"].to_numpy() + 1e-12)
        for k, place in zip(q, at, strict=True):
            found[f"distribution function near {k:g}"] = (bool(own_cdf[place]), None)
        gap = result.iqr().iloc[0]
        found["distance of quartiles"] = (bool(gap["ci_low"] <= truth[""][2] - truth[""][0] <= gap["ci_high"]), None)
        marks = result.to_frame()["flags"].to_numpy().reshape(-1, 3)[1:, 1]
        if not any(marks):
            first, second = (f"{by}={level}" for level in levels[:2])
            gap = result.diff(first, second).iloc[0]
            found["difference of medians"] = (
                bool(gap["ci_low"] <= truth[first][1] - truth[second][1] <= gap["ci_high"]),
                None,
            )
        return {f"{column}: {key}": value for key, value in found.items()}

    return measure


def _described(name: str, columns: Sequence[str], by: str, covers: str) -> Callable[..., Hits]:
    """Every number of Table One, and the standardised differences, with medians of the first column."""
    one = case(name)
    frame = one.frame[[*columns, by]]
    schema = cf.Schema({key: one.schema()[key] for key in (*columns, by)})
    numeric = next(key for key in columns if key in one.recipe.columns)
    method = TableOne(f"{' + '.join(columns)} ~ {by}", medians=(numeric,), inference=covers)
    from confide.schema import CodedFrame

    truth = method.reference(CodedFrame.of(frame, schema))

    def measure(n: int, mu: float, relation: str, g: np.random.Generator) -> Hits:
        sample = frame.iloc[g.integers(0, len(frame), n)].reset_index(drop=True)
        result = _released(method, sample, schema, mu, relation, g)
        aims = truth
        if covers == "dataset":
            try:
                aims = method.reference(CodedFrame.of(sample, schema))
            except cf.errors.PlanError:  # a group without records has no median
                return {}
        table, found = result.to_frame(), {}
        for key, row in table.iterrows():
            aim = aims.get(str(key), float("nan"))
            ok = row["flags"] == "" and np.isfinite(aim) and result.status == "valid"
            inside = row["ci_low"] - 1e-9 <= aim <= row["ci_high"] + 1e-9
            found[f"{covers}: {key}"] = (bool(inside) if ok else None, None)
        if covers == "population":
            found |= _standardised(result, frame, columns, by, one)
        return found

    return measure


def _standardised(result: Any, frame: pd.DataFrame, columns: Sequence[str], by: str, one: Any) -> dict[str, Any]:
    """Of the first two groups, against those of the whole table."""
    groups = [frame[frame[by] == level] for level in one.levels(by)[:2]]
    found: dict[str, Any] = {}
    table, flags = result.differences(), result.to_frame()["flags"]
    for key, row in table.iterrows():
        name = str(key)
        column = next((own for own in columns if name.startswith(own)), "")
        if column in one.recipe.columns and name.endswith("mean"):
            m, v = zip(*((own[column].mean(), own[column].var(ddof=0)) for own in groups), strict=True)
        elif column and column not in one.recipe.columns:
            level = name.split("=", 1)[-1] if "=" in name else name.split(": ", 1)[-1]
            m = tuple((own[column] == level).mean() for own in groups)
            v = tuple(p * (1 - p) for p in m)
        else:
            continue
        aim = (m[0] - m[1]) / np.sqrt((v[0] + v[1]) / 2) if v[0] + v[1] > 0 else float("nan")
        unsure = any(text for label, text in flags.items() if str(label).startswith(name))
        inside = row["ci_low"] <= aim <= row["ci_high"]
        found[f"standardised difference: {name}"] = (
            None if unsure or not np.isfinite(aim + row["ci_low"]) else bool(inside),
            None,
        )
    return found


def checks(only: Sequence[str]) -> Iterator[Check]:
    """All designs, or those of some kinds."""
    made: dict[str, Callable[[], Iterator[Check]]] = {
        "ranks": _rank_checks, "tables": _table_checks, "correlation": _correlation_checks,
        "distribution": lambda: (Check("distribution", "covered", _distributed(*own)) for own in COLUMNS[1:]),
        "table_one": _table_one_checks,
    }  # fmt: skip
    for name, make in made.items():
        if not only or name in only:
            yield from make()


def _rank_checks() -> Iterator[Check]:
    for name, column, _ in COLUMNS:
        for split in (0.5, 0.1):
            yield Check("Mann-Whitney, equal laws", "rejected", _two(name, column, split))
        yield Check("Kruskal-Wallis, equal laws", "rejected", _several(name, column))
        yield Check("Wilcoxon, symmetric", "rejected", _signed(name, column))
    for own in COLUMNS:
        yield Check("P(Y1 > Y2), real groups", "covered", _effect(*own))


def _table_checks() -> Iterator[Check]:
    for own in (("adult", "race", "income"), ("adult", "education", "sex"), ("cardiotocography", "ds", "class")):
        yield Check("independence", "rejected", _crossed(*own))
    yield Check("independence", "rejected", _crossed("adult", "race", "income", "sex"))
    for name, attribute in (("adult", "race"), ("adult", "native_country"), ("wine_quality", "quality")):
        yield Check("fit", "rejected", _fitted(name, attribute))
    for rate in (0.3, 0.01):
        for skewed in (False, True):
            yield Check("trend", "rejected", _trend(rate, skewed))


def _correlation_checks() -> Iterator[Check]:
    for own in (
        ("adult", "age", "capital_gain"), ("default_of_credit_card_clients", "limit_bal", "pay_amt1"),
        ("bike_sharing_hourly", "cnt", "casual"), ("wine_quality", "residual_sugar", "chlorides"),
        ("california_housing", "median_income", "median_house_value"), ("air_quality", "co_gt", "c6h6_gt"),
    ):  # fmt: skip
        yield Check("correlation", "covered", _correlated(*own))


def _table_one_checks() -> Iterator[Check]:
    for name, columns, by in (
        ("adult", ("age", "capital_gain", "race"), "sex"),
        ("default_of_credit_card_clients", ("limit_bal", "pay_amt1", "marriage"), "default_payment_next_month"),
        ("wine_quality", ("alcohol", "chlorides", "quality"), "color"),
    ):
        for covers in ("population", "dataset"):
            yield Check("Table One", "covered", _described(name, columns, by, covers))


def judged(check: Check, n: int, mu: float, relation: str, replications: int) -> list[dict[str, Any]]:
    """One row for each number of a design."""
    found: dict[str, list[tuple[bool | None, bool | None]]] = {}
    for r in range(replications):
        g = np.random.default_rng([crc32(f"{check.name} {n} {mu} {relation}".encode()), r])
        for name, hit in check.measure(n, mu, relation, g).items():
            found.setdefault(name, []).append(hit)
    rows = []
    for name, hits in found.items():
        own, plain = ([bool(hit[side]) for hit in hits if hit[side] is not None] for side in (0, 1))
        whole = held(np.array(own, dtype=bool)[:, None], np.ones((len(own), 1), dtype=bool))
        failed = whole.long(SIZE) if check.claim == "rejected" else whole.short(LEAST)
        rows.append(
            {"check": check.name, "number": name, "n": n, "mu": mu, "relation": relation, "claim": check.claim,
             "value": whole.coverage, "low": whole.low, "high": whole.high, "answered": len(own) / replications,
             "plain": float(np.mean(plain)) if plain else float("nan"), "failed": failed}
        )  # fmt: skip
    return rows


def lines(rows: Sequence[Mapping[str, Any]], replications: int) -> Iterator[str]:
    """A page: sums by design and setting, then every failure."""
    yield "| design | n | mu | relation | numbers | least answered | rejected or covered: median | worst | without privacy | fail |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for key in dict.fromkeys((row["check"], row["claim"], row["n"], row["mu"], row["relation"]) for row in rows):
        own = [row for row in rows if (row["check"], row["claim"], row["n"], row["mu"], row["relation"]) == key]
        told = [row for row in own if row["answered"] >= 0.2]
        values = np.array([row["value"] for row in told]) if told else np.array([np.nan])
        worst = values.max() if key[1] == "rejected" else values.min()
        plain = [row["plain"] for row in own if np.isfinite(row["plain"])]
        yield (
            f"| {key[0]} | {key[2]:,} | {key[3]:g} | {key[4]} | {len(own)} | {min(row['answered'] for row in own):.2f} | "
            f"{np.median(values):.3f} | {worst:.3f} | {f'{np.mean(plain):.3f}' if plain else ''} | {sum(row['failed'] for row in own)} |"
        )
    failed = [row for row in rows if row["failed"]]
    yield ""
    yield f"{replications} samples each; {len(failed)} of {len(rows)} numbers fail."
    for row in failed:
        yield (
            f"- {row['check']}, {row['number']}, n = {row['n']:,}, mu = {row['mu']:g}, {row['relation']}: {row['claim']} "
            f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}] of {row['answered']:.0%} answered; not private {row['plain']:.3f}"
        )


def main(words: Sequence[str] = ()) -> int:
    """Run and print; 1 when a claim failed."""
    parser = argparse.ArgumentParser(prog="confide lab bench tables_hostile")
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument(
        "--only", nargs="+", default=[], choices=("ranks", "tables", "correlation", "distribution", "table_one")
    )
    parser.add_argument("--write", default="")
    asked = parser.parse_args(list(words))
    lost = missing()
    if lost is not None:
        print(f"skipped: {lost}")
        return 0
    rows: list[dict[str, Any]] = []
    OUT.mkdir(parents=True, exist_ok=True)
    for check in checks(asked.only):
        for n, mu, relation in SETTINGS:
            found = judged(check, n, mu, relation, asked.replications)
            rows += found
            for row in found:
                if row["failed"]:
                    print("\n".join(list(lines([row], asked.replications))[-1:]), flush=True)
        (OUT / f"tables_hostile{'_' + '_'.join(asked.only) if asked.only else ''}.json").write_text(json.dumps(rows))
    text = "\n".join(lines(rows, asked.replications))
    print(text)
    if asked.write:
        Path(asked.write).write_text(text + "\n")
    return int(any(row["failed"] for row in rows))
