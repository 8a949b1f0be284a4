"""The long audit: every planted fault with its clean twin, our methods, and every law of noise at a claim that is tight.

    confide lab bench audit

prints the tables of evidence/audit.md. Draws on each neighbor: CONFIDE_AUDIT_RUNS (default 10^6).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from math import inf
from typing import Any

import numpy as np

import confide as cf
from confide.audit import Finding, audit, epsilon_lower_bound, mu_lower_bound
from confide.audit.verdict import said
from confide.guarantees import GDP, ZCDP, PureDP
from confide.noise import SecureNoise
from confide_lab.benchmarks.planted.catalogue import FAULTS
from confide_lab.methods.quantile.ranks import Quantile

RUNS = int(os.environ.get("CONFIDE_AUDIT_RUNS", "1000000"))
TIGHT = 0.8  # a claim that is tight must be reached to this part
SCHEMA = cf.Schema({"a": cf.Numeric(-2, 3), "b": cf.Numeric(0, 1), "y": cf.Numeric(-20, 30)})

GRID = cf.Schema({"a": cf.Numeric(-2, 3, steps=1025)})
Row = dict[str, Any]


def faults() -> list[Row]:
    """Each fault must be caught, each clean twin must pass."""
    rows, lines = [], []
    for fault in FAULTS:
        start = time.perf_counter()
        wrong, clean = fault.caught(RUNS), fault.passed(RUNS)
        worst = (wrong.violated or tuple(wrong))[0]
        twin = max((f for f in clean if f.quantity == worst.quantity), key=lambda f: f.lower_bound, default=clean[0])
        passed = bool(wrong.violated) and not clean.violated
        rows.append(
            {
                "check": f"planted fault: {fault.name}",
                "value": worst.lower_bound,
                "claim": _claim(worst),
                "clean": twin.lower_bound,
                "attack": worst.attack,
                "draws": worst.draws,
                "seconds": round(time.perf_counter() - start, 2),
                "passed": passed,
            }
        )
        lines.append(
            (fault.name, fault.what, _claim(worst), _bound(worst), _bound(twin), _draws(worst), worst.attack)
        )  # fmt: skip
        _say(rows[-1])
    heads = ("fault", "what is wrong", "claim", "found", "clean twin", "draws", "attack")
    _markdown(f"{sum(row['passed'] for row in rows)} of {len(rows)} planted faults caught, no clean twin", heads, lines)
    return rows


def methods() -> list[Row]:
    """Our methods hold, and where the claim is tight the sampled bound comes near it."""
    rows, lines = [], []
    for label, method in (
        ("SSP robust", cf.regression.SSP("y ~ a + b", recenter=False)),
        ("SSP classical", cf.regression.SSP("y ~ a + b", cov="classical", clipping_check=False, recenter=False)),
        ("SSP log response", cf.regression.SSP("log1p(b) ~ a", recenter=False)),
        ("Quantile", Quantile("a", q=(0.25, 0.5))),
    ):
        found = audit(method, GRID if label == "Quantile" else SCHEMA, privacy=GDP(1.0), runs=RUNS)
        for one in found:
            lines.append((label, *_cells(one)))
            tight = (
                one.draws > 0 and one.name.endswith(("moments", "release")) and label in ("SSP robust", "SSP classical")
            )
            reached = one.lower_bound / one.claim.mu if tight else None
            rows.append(
                {
                    "check": f"{label}: {one.name}, {one.relation}, {one.attack}",
                    "value": one.lower_bound,
                    "claim": _claim(one),
                    "share_of_claim": reached,
                    "draws": one.draws,
                    "passed": not one.violated and (reached is None or reached >= TIGHT),
                }
            )
            _say(rows[-1])
    heads = ("method", "audited", "relation", "claim", "lower bound", "draws", "attack", "verdict")
    _markdown("Methods of the library at mu = 1", heads, lines)
    return rows


def laws() -> list[Row]:
    """Each law at a claim that is tight: the sampled bound reaches 0.8 of it."""
    source, step = SecureNoise(), 1_000
    rows, lines = [], []
    tight: list[tuple[str, Any, Any, Any, Any, float]] = [
        ("grid_gaussian", GDP(1.0), step**2, step, mu_lower_bound, 1.0),
        ("grid_laplace", PureDP(1.0), step, step, epsilon_lower_bound, 1.0),
        ("discrete_laplace", PureDP(1.0), step, step, epsilon_lower_bound, 1.0),
        ("discrete_laplace", PureDP(1.0), 1, 1, epsilon_lower_bound, 1.0),
        ("discrete_gaussian", ZCDP(0.5), step**2, step, mu_lower_bound, 1.0),
    ]
    for law, claim, scale, shift, bound, number in tight:
        draw = getattr(source, law, None)
        if draw is None:
            continue
        found = bound(
            lambda x, k, draw=draw, scale=scale: x + draw(scale, k), 0, shift, runs=RUNS, claim=claim,
            vectorized=True, name=f"{law}, scale {scale}",
        )  # fmt: skip
        rows.append(_law_row(found, number))
        lines.append(_cells(found))
    if hasattr(source, "exponential_mechanism"):
        found = epsilon_lower_bound(
            # one score rises and all others fall: the more candidates, the nearer the exact epsilon is to the claim (here .97)
            _choices(source), (8, *[0] * 29), (0, *[8] * 29),
            runs=min(RUNS, 500_000), claim=PureDP(1.0), vectorized=True, name="exponential mechanism, 30 candidates",
        )  # fmt: skip
        rows.append(_law_row(found, 1.0))
        lines.append(_cells(found))
    heads = ("audited", "relation", "claim", "lower bound", "draws", "attack", "verdict")
    _markdown("Laws of noise at a claim that is tight", heads, lines)
    return rows


def _choices(source: Any) -> Any:
    def drawn(scores: Sequence[int], runs: int) -> Any:
        values = np.array(scores)
        return np.array([float(source.exponential_mechanism(values, 1, 8)) for _ in range(runs)])

    return drawn


def _law_row(found: Finding, number: float) -> Row:
    share = found.lower_bound / number
    row = {
        "check": f"tight claim: {found.name}",
        "value": found.lower_bound,
        "claim": _claim(found),
        "share_of_claim": share,
        "draws": found.draws,
        "passed": not found.violated and share >= TIGHT,
    }
    _say(row)
    return row


def _claim(one: Finding) -> str:
    text = "-" if one.claim is None else said(one.claim)
    for relation in (one.relation, "relation open"):
        text = text.replace(f", {relation}", "")
    return text


def _bound(one: Finding) -> str:
    return f"{one.quantity} >= {one.lower_bound:.4g}"


def _draws(one: Finding) -> str:
    return f"{one.draws:,}" if one.draws else "exact"


def _cells(one: Finding) -> tuple[str, ...]:
    return (one.name, one.relation or "-", _claim(one), _bound(one), _draws(one), one.attack, one.verdict)


def _markdown(title: str, heads: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    print(f"\n{title}\n\n| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    for line in lines:
        print(f"| {' | '.join(cell.replace('|', ' ') for cell in line)} |")
    print(flush=True)


def _say(row: Row) -> None:
    print(
        f"{'ok    ' if row['passed'] else 'FAILED'} {row['check']}: {row['value']:.4g} (claim {row['claim']})",
        flush=True,
    )


def run() -> list[Row]:
    rows = [*laws(), *methods(), *faults()]
    # strict JSON has no infinity
    return [{key: str(value) if value == inf else value for key, value in row.items()} for row in rows]
