"""Whether a published release is the one that its ledger was charged for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from confide.errors import PlanError, PrivacyError, ReleaseError
from confide.gate.reading import consistent
from confide.gate.terms import check_ledger
from confide.guarantees import Guarantee
from confide.protocol import Release
from confide.protocol.units.whose import as_record

if TYPE_CHECKING:
    from confide.ledger import Ledger

__all__ = ["Check", "verify"]


@dataclass(frozen=True)
class Check:
    """What `verify` found: `ok`, and one line for each thing looked at."""

    ok: bool
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.lines)


def verify(release: Release, ledger: Ledger) -> Check:
    """Check a published release against the ledger it was charged to: receipt, guarantee, plan, chain."""
    if not isinstance(release, Release):
        raise ReleaseError(
            f'a release is verified, got {type(release).__name__}; write cf.verify(cf.Release.load("release.json"), ledger)'
        )
    if ledger is None:
        raise PlanError(
            'a release is verified against its ledger, got None; write ledger=cf.Ledger.open("book.db", dataset="survey")'
        )
    check_ledger(ledger)
    lines, ok = [], True
    receipt = ledger.find(release.sha256)
    if release.simulated:
        ok = False
        lines.append("FAILED  the release was made with simulated noise: it protects nobody")
    if receipt is None:
        ok = False
        lines.append(f"FAILED  no receipt for release {release.sha256} in dataset {ledger.dataset!r}")
    else:
        lines.append(f"ok      receipt of entry {receipt.seq} names this release")
        paid = consistent(release) and receipt.guarantee in (*release.guarantees, *_of_records(release))
        ok &= paid
        lines.append(
            f"{'ok    ' if paid else 'FAILED'}  the charged guarantee is one that the release's spends pay for"
        )
        same = receipt.plan_sha256 == release.plan.sha256
        ok &= same
        lines.append(f"{'ok    ' if same else 'FAILED'}  the charged plan is the release's plan")
    book = ledger.verify(heads=[release.sha256] if receipt is not None else [])
    ok &= book.ok
    lines.append(
        "ok      the ledger's chain, totals and limits hold" if book.ok else "FAILED  " + "; ".join(book.problems)
    )
    return Check(ok, tuple(lines))


def _of_records(release: Release) -> tuple[Guarantee, ...]:
    """What the release of an enforced unit is charged as in a ledger of records."""
    try:
        return (as_record(release.guarantees, "record", release.plan.schema),)
    except PrivacyError:
        return ()
