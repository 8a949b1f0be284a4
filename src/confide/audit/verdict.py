"""What an audit found: one `Finding` per question, an `Audit` as their table and verdict, and claims read as trade-off curves.

Three words. "violated": an attack refutes the claim. "holds": attacks that could have refuted it did not; nothing is proved. "untested":
no attack could have, and `note` says why. A spend of a plan holds where every question that was put to it holds; an audit holds where
every spend does. One refuted claim makes the whole "violated"; else one untested spend makes it "untested".

Every claim, whatever its type, is tested as a trade-off curve f. A mechanism that keeps the claim lets no test on two
neighbors have a false-alarm rate alpha and a miss rate beta with beta < f(alpha). A sampled audit knows both rates up
to one-sided bounds. It says "violated" only when the whole region below these bounds lies under f. So it is wrong
about a mechanism that keeps its claim with probability at most 1 - confidence.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import isfinite, nan
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from confide.errors import PrivacyError
from confide.guarantees import GDP, ApproxDP, PureDP, TradeOff
from confide.guarantees.validation import real
from confide.guarantees.values import Statement

if TYPE_CHECKING:
    import pandas as pd


Verdict: TypeAlias = Literal["holds", "violated", "untested"]
Curve: TypeAlias = Callable[[float], float]

VERDICTS = ("holds", "violated", "untested")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The answer to one question that was put to a mechanism.

    `name`: what was audited. `quantity`: what `lower_bound` counts ("epsilon", "mu", "ratio", "gap"). `claim`: a
    guarantee, a curve, a number of `quantity`, or None. `lower_bound`: what the mechanism spends at least. `verdict`:
    "holds" when nothing was found against the claim, "violated" when it is refuted, "untested" where nothing was
    asked (why, says the note). `confidence`: 1 - the probability of "violated" (or of a lower bound above the truth)
    for a mechanism that keeps its claim; 1.0 for exact audits. `draws`: runs of the mechanism, both neighbors
    together; 0 for exact audits. `attack`: how the neighbors were told apart. `delta`: the additive part at which an
    epsilon was bounded. `alpha`, `beta`: upper bounds on the false-alarm and the miss rate of the test. `note`:
    assumptions of the bound, in plain words.

    Errors: PrivacyError for a verdict that is none of the three, or a confidence outside (0, 1].

    >>> Finding(name="sum", quantity="mu", claim=1.0, lower_bound=2.0, verdict="violated", attack="threshold").violated
    True
    """

    name: str
    quantity: str
    claim: Any
    lower_bound: float
    verdict: Verdict
    attack: str
    confidence: float = 1.0
    draws: int = 0
    relation: str | None = None
    delta: float = 0.0
    alpha: float = nan
    beta: float = nan
    note: str = ""
    spend: str = ""

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise PrivacyError(f"a verdict is one of {', '.join(VERDICTS)}, got {self.verdict!r}")
        if not 0 < self.confidence <= 1:
            raise PrivacyError(
                f"confidence must be above 0 and at most 1, got {self.confidence!r}", "for instance 0.99"
            )

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted."""
        return self.verdict == "violated"

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe: the claim as its text, numbers that are not finite as "inf", "-inf" or None.

        >>> Finding(name="a", quantity="mu", claim=GDP(1.0), lower_bound=2.0, verdict="violated", attack="atom").to_dict()["claim"]
        'GDP(mu=1, relation open)'
        """
        return {key: _plain(value) for key, value in _shown(self).items()}

    def __str__(self) -> str:
        return Audit((self,)).text()


@dataclass(frozen=True)
class State:
    """What is known of one spend under one relation: verdict, and why it is not "holds"."""

    spend: str
    relation: str | None
    verdict: Verdict
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe."""
        return {"spend": self.spend, "relation": self.relation, "verdict": self.verdict, "reason": self.reason}

    def __str__(self) -> str:
        where = f"{self.spend}, {self.relation}" if self.relation else self.spend
        return f"{where}: {self.verdict}" + (f", {self.reason}" if self.reason else "")


@dataclass(frozen=True)
class Audit:
    """Findings as a table: text, JSON, pandas frame, HTML in a notebook. Audits add up with `+`.

    `verdict` is "holds", "violated" or "untested" for the whole, `states` says it for each spend, with the reason; `ok` is true for "holds"
    alone.

    >>> ok = Finding(name="sum", quantity="mu", claim=GDP(1.0), lower_bound=0.97, verdict="holds", attack="threshold", draws=2000)
    >>> audit = Audit((ok,), title="sums") + Audit((ok,))
    >>> audit.ok, audit.verdict, len(audit)
    (True, 'holds', 2)
    >>> never = Finding(name="tail", quantity="mu", claim=None, lower_bound=0.0, verdict="untested", attack="none", note="no pair")
    >>> (audit + (never,)).ok, str((audit + (never,)).untested[0])
    (False, 'tail: untested, no pair')
    """

    findings: tuple[Finding, ...]
    title: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "findings", tuple(self.findings))

    @property
    def ok(self) -> bool:
        """Whether every spend was attacked and no claim was refuted; `verdict` tells what is missing."""
        return self.verdict == "holds"

    @property
    def verdict(self) -> Verdict:
        """Of the whole: "violated" with one refuted claim, else "untested" with one untested spend (or none at all), else "holds"."""
        found = {state.verdict for state in self.states}
        return "violated" if "violated" in found else "holds" if found == {"holds"} else "untested"

    @property
    def states(self) -> tuple[State, ...]:
        """One for each spend and relation, in the order of the table; questions of one name are one question put in several ways."""
        asked: dict[tuple[str, str | None], dict[str, list[Finding]]] = {}
        for one in self.findings:
            asked.setdefault((one.spend or one.name, one.relation), {}).setdefault(one.name, []).append(one)
        return tuple(
            _state(spend, relation, list(questions.values())) for (spend, relation), questions in asked.items()
        )

    @property
    def untested(self) -> tuple[State, ...]:
        """The spends that no attack could have refuted, with the reasons."""
        return tuple(state for state in self.states if state.verdict == "untested")

    @property
    def violated(self) -> tuple[Finding, ...]:
        """The findings that refute their claims."""
        return tuple(finding for finding in self.findings if finding.violated)

    def __add__(self, other: Audit | Iterable[Finding]) -> Audit:
        return Audit((*self.findings, *other), self.title or (other.title if isinstance(other, Audit) else ""))

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __getitem__(self, index: int) -> Finding:
        return self.findings[index]

    def text(self) -> str:
        """The table in plain text: what, relation, claim, lower bound, confidence, draws, attack, verdict."""
        table = [_HEADS, *(_cells(finding) for finding in self.findings)]
        widths = [max(len(row[j]) for row in table) for j in range(len(_HEADS))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
        ]
        lines.insert(1, "-" * max(len(line) for line in lines))
        notes = dict.fromkeys(f"{finding.name}: {finding.note}" for finding in self.findings if finding.note)
        return "\n".join([*([self.title] if self.title else []), *lines, *notes, *self.summary()])

    def summary(self) -> list[str]:
        """The verdict in one line, and a line for each spend that is violated or untested."""
        states = self.states
        counts = [(word, sum(state.verdict == word for state in states)) for word in VERDICTS]
        of = ", ".join(f"{count} {word}" for word, count in counts if count) or "nothing was asked"
        return [f"verdict: {self.verdict} ({of})", *(str(state) for state in states if state.verdict != "holds")]

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe: title, verdict, ok, states (one for each spend), findings."""
        return {
            "title": self.title,
            "verdict": self.verdict,
            "ok": self.ok,
            "states": [state.to_dict() for state in self.states],
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def json(self) -> str:
        """The same as JSON text; strict JSON, no NaN."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def frame(self) -> pd.DataFrame:
        """One row per finding, columns as the fields of `Finding`; claims as texts."""
        import pandas as pd

        return pd.DataFrame([_shown(finding) for finding in self.findings], columns=list(Finding.__dataclass_fields__))

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in _HEADS)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(finding)) + "</tr>"
            for finding in self.findings
        )
        caption = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def __str__(self) -> str:
        return self.text()


def _state(spend: str, relation: str | None, questions: list[list[Finding]]) -> State:
    """A spend holds where each question holds in one of its ways, and no way refutes it."""
    refuted = [one for ways in questions for one in ways if one.violated]
    if refuted:
        return State(spend, relation, "violated", "; ".join(dict.fromkeys(one.attack for one in refuted)))
    missing = [ways for ways in questions if all(one.verdict == "untested" for one in ways)]
    if missing:
        reasons = dict.fromkeys(one.note or "no claim was made" for ways in missing for one in ways)
        return State(spend, relation, "untested", "; ".join(reasons))
    return State(spend, relation, "holds")


_HEADS = ("audited", "relation", "claim", "lower bound", "confidence", "draws", "attack", "verdict")


def _cells(finding: Finding) -> tuple[str, ...]:
    at = f" (delta {finding.delta:.3g})" if finding.quantity == "epsilon" and finding.delta else ""
    bound = "-" if finding.lower_bound != finding.lower_bound else f"{finding.lower_bound:.4g}"
    return (
        finding.name,
        finding.relation or "-",
        "-" if finding.claim is None else said(finding.claim).replace(", relation open", ""),
        f"{finding.quantity} >= {bound}{at}",
        "exact" if finding.confidence == 1 and not finding.draws else f"{finding.confidence:.6g}",
        f"{finding.draws:,}" if finding.draws else "-",
        finding.attack,
        finding.verdict,
    )


def _shown(finding: Finding) -> dict[str, Any]:
    """The fields of a finding, its claim as text."""
    body = {name: getattr(finding, name) for name in Finding.__dataclass_fields__}
    return {**body, "claim": None if finding.claim is None else said(finding.claim)}


def _plain(value: Any) -> Any:
    if isinstance(value, float | np.floating) and not isfinite(value):
        return None if value != value else "inf" if value > 0 else "-inf"
    return value.item() if isinstance(value, np.generic) else value


def said(claim: Any) -> str:
    """A claim as a short text: a number, or the claim's own text.

    >>> said(1.0), said(PureDP(0.5))
    ('1', 'PureDP(epsilon=0.5, relation open)')
    """
    return f"{claim:.6g}" if isinstance(claim, int | float | np.number) else str(claim)


def curve_of(claim: Any, *, quantity: str = "mu", delta: float = 0.0) -> Curve:
    """The trade-off curve f that a claim promises: the least miss rate of any test at a false-alarm rate alpha in [0, 1].

    `claim`: a guarantee (GDP, PureDP, ApproxDP, ZCDP and every other with `detection_limit`), a curve or anything
    that holds one (an `f` or a `curve` with an `f`), or a number, read as mu or as epsilon (with `delta`) as
    `quantity` says. Errors: PrivacyError for anything else. Source: Dong, Roth, Su 2022, section 2; Kairouz, Oh,
    Viswanath 2015.

    >>> round(curve_of(GDP(1.0))(0.05), 4), round(curve_of(1.0, quantity="epsilon")(0.0), 4)
    (0.7405, 1.0)
    """
    if isinstance(claim, int | float | np.number) and not isinstance(claim, bool):
        number = real(float(claim), "claim", "claim=1.0")
        if number <= 0:
            return lambda alpha: max(0.0, 1 - alpha - (delta if quantity == "epsilon" else 0.0))
        if quantity == "mu":
            claim = GDP(number)
        else:
            claim = ApproxDP(number, delta) if delta > 0 else PureDP(number)
    f = trade_off_of(claim)
    if f is not None:
        return lambda alpha: float(f(min(max(alpha, 0.0), 1.0)))
    if isinstance(claim, Statement):
        return lambda alpha: 1.0 - _limit(claim.detection_limit, alpha)
    raise PrivacyError(
        f"a claim is a guarantee such as GDP(1.0), a curve such as guarantees.gaussian(1.0), or a number, got a {type(claim).__name__}"
    )


def trade_off_of(claim: Any) -> Callable[[Any], Any] | None:
    """f of a claim that is a curve, or of another object with a function f; None of any other."""
    f = claim.curve.f if isinstance(claim, TradeOff) else getattr(claim, "f", None)
    return f if callable(f) else None


def relation_of(claim: Any) -> str | None:
    """Whose neighbors a claim is about; None where it leaves that open, as a curve or a number does."""
    return claim.relation if isinstance(claim, Statement) else None


def _limit(limit: Callable[[float], float], alpha: float) -> float:
    """detection_limit at the ends too: its argument must lie strictly between 0 and 1."""
    if alpha >= 1:
        return 1.0
    return float(limit(max(alpha, 5e-324)))


def below_curve(alpha: float, beta: float, f: Curve) -> bool:
    """Whether every point (a, b) with a <= alpha, b <= beta lies below f, in either direction of the pair of neighbors.

    f does not increase: b <= beta < f(alpha) <= f(a). The other direction exchanges the two errors.

    >>> below_curve(0.1, 0.1, curve_of(GDP(1.0))), below_curve(0.4, 0.4, curve_of(GDP(1.0)))
    (True, False)
    """
    return beta < f(alpha) or alpha < f(beta)
