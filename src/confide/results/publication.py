"""The report of a publication: contents, a section for each question, one statement for the file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from confide._lazy import later
from confide.errors import NoResult, PlanError, ReleaseError
from confide.guarantees import Guarantee
from confide.protocol import Release, Result
from confide.results.words import SIMULATED, clean

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

__all__ = ["FAILED", "Report"]

#: What is said of a question that failed after the charge.
FAILED = (
    "this question failed after the charge, and nothing of it was released. That it failed may depend on the records and is covered by no "
    "guarantee; whoever publishes this file publishes that fact too"
)


@dataclass(frozen=True, eq=False)
class Report:
    """The results of all questions of a publication: `report["model"].summary()`, `report.report("index.html")`.

    results: by name; a question that failed after the charge has none, and its status is "failed". shares: of mu^2, by question.
    """

    release_sha256: str
    results: Mapping[str, Result]
    statuses: Mapping[str, str]
    shares: Mapping[str, float]
    wheres: Mapping[str, str | None]
    targets: Mapping[str, str]
    flags: tuple[str, ...]
    requested: Guarantee
    guarantee: Guarantee
    target: str
    covers: str
    simulated: bool

    @classmethod
    def of(
        cls,
        release: Release,
        results: Mapping[str, Result],
        shares: Mapping[str, float],
        parts: Mapping[str, str] | None = None,
    ) -> Report:
        """The report of a release, from the results of its questions. parts: which part of the plan answers each question."""
        plan = release.plan
        children = {
            name: plan.children[part] for name, part in (parts or {name: name for name in plan.children}).items()
        }
        return cls(
            release_sha256=release.sha256,
            results=dict(results),
            statuses={name: results[name].status if name in results else "failed" for name in children},
            shares=dict(shares),
            wheres={name: child.where for name, child in children.items()},
            targets={name: getattr(results.get(name), "target", child.target) for name, child in children.items()},
            flags=("failed_questions",) if len(results) < len(children) else (),
            requested=plan.requested,
            guarantee=release.charged,
            target=plan.target,
            covers=plan.covers,
            simulated=release.simulated,
        )

    def read_as(self, readings: Mapping[str, Callable[[Any], Result]]) -> Report:
        """The same release, read otherwise: what the functions by question make of their results, as a test of a table."""
        found = {name: readings[name](one) if name in readings else one for name, one in self.results.items()}
        return replace(
            self,
            results=found,
            statuses={**self.statuses, **{name: one.status for name, one in found.items()}},
            targets={
                **self.targets,
                **{name: getattr(one, "target", self.targets[name]) for name, one in found.items()},
            },
        )

    @property
    def status(self) -> str:
        """ "ok" where every question is; the questions' own where they agree; else "partial"."""
        found = set(self.statuses.values())
        return "partial" if len(found) > 1 or "failed" in found else found.pop()

    @property
    def relation(self) -> str:
        """The neighbouring relation of the guarantee."""
        return str(self.guarantee.relation)

    def __getitem__(self, name: str) -> Result:
        if name not in self.statuses:
            raise ReleaseError(
                f"the publication has no question {name!r}; it has: {', '.join(map(repr, self.statuses))}"
            )
        if name not in self.results:
            raise NoResult(f"question {name!r}: {FAILED}")
        return self.results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.statuses)

    def __len__(self) -> int:
        return len(self.statuses)

    def keys(self) -> tuple[str, ...]:
        """The names of the questions, in their order."""
        return tuple(self.statuses)

    def to_frame(self) -> pd.DataFrame:
        """The contents: a row for each question with its status, its share of mu^2, the privacy noise's median share of the variances
        (NaN where a result states none), its subgroup and what it estimates.
        """
        rows = {
            name: (
                self.statuses[name],
                self.shares[name],
                _noise_share(self.results.get(name)),
                self.wheres[name] or "",
                self.targets[name],
            )
            for name in self.statuses
        }
        heads = ["status", "budget_share", "privacy_share", "where", "target"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=heads).rename_axis("question")

    def to_json(self) -> str:
        """Contents and all results as strict JSON."""
        body = {
            "release_sha256": self.release_sha256,
            "status": self.status,
            "flags": list(self.flags),
            "guarantee": self.guarantee.to_dict(),
            "target": self.target,
            "covers": self.covers,
            "simulated": self.simulated,
            "questions": {
                name: {
                    "status": self.statuses[name],
                    "budget_share": self.shares[name],
                    "where": self.wheres[name],
                    "target": self.targets[name],
                    "result": json.loads(self.results[name].to_json()) if name in self.results else None,
                }
                for name in self.statuses
            },
        }
        return json.dumps(body, allow_nan=False)

    def summary(self) -> str:
        """The contents and the statement for the file, then the table of each question."""
        lines = [SIMULATED] if self.simulated else []
        lines += [
            f"A publication of {len(self)} questions, status {self.status}",
            "",
            *self._contents(),
            "",
            *self._statement(),
        ]
        for name in self.statuses:
            own = self.results[name].summary() if name in self.results else FAILED
            lines += ["", f"== {name} ".ljust(78, "="), own]
        return "\n".join(line if "\n" in line else clean(line) for line in lines)

    def _contents(self) -> list[str]:
        wide = max(8, *map(len, self.statuses)) + 2
        head = f"{'question':<{wide}}{'status':<16}{'of mu^2':>8}{'noise':>8}  estimated"
        rows = [
            f"{name:<{wide}}{row.status:<16}{row.budget_share:>8.1%}{_percent(row.privacy_share):>8}  {row.target}"
            for name, row in zip(self.statuses, self.to_frame().itertuples(index=False), strict=True)
        ]
        return [head, *rows]

    def _statement(self) -> list[str]:
        failed = [name for name, status in self.statuses.items() if status == "failed"]
        return [
            f"Guarantee of all questions together: {self.guarantee}, requested {self.requested}",
            f"Intervals: {self.covers}",
            *(f"{name}: {FAILED}" for name in failed),
            f"Release SHA: {self.release_sha256}",
        ]

    def plot(self) -> Any:
        """A publication has no single plot: `PlanError` names the call."""
        raise PlanError(
            f'a publication is drawn question by question; write report["{next(iter(self.statuses))}"].plot()'
        )

    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML page with contents and a section for each question; returns its path."""
        try:
            Path(path).write_text(self._page(), encoding="utf-8")
        except OSError as error:
            raise PlanError(
                f"the report cannot be written to {str(path)!r}: {error.strerror}; give a file in a directory that exists"
            ) from None
        return Path(path)

    def _repr_html_(self) -> str:
        return self._table()

    def __repr__(self) -> str:
        return clean(f"<Report of {len(self)} questions, status {self.status!r}, {self.guarantee}>")

    # the page -------------------------------------------------------------------------------------------------------

    def _table(self) -> str:
        heads = ("question", "status", "share of the budget", "privacy noise", "subgroup", "estimated")
        rows = []
        for place, (name, row) in enumerate(zip(self.statuses, self.to_frame().itertuples(index=False), strict=True)):
            cells = (row.status, f"{row.budget_share:.1%}", _percent(row.privacy_share), row.where or "all", row.target)
            rows.append(
                f'<tr><th scope="row"><a href="#q{place}">{_text(name)}</a></th>'
                + "".join(f"<td>{_text(v)}</td>" for v in cells)
                + "</tr>"
            )
        head = "".join(f'<th scope="col">{text}</th>' for text in heads)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"

    def _page(self) -> str:
        alarm = f'<p class="alarm" role="alert">{_text(SIMULATED)}</p>' if self.simulated else ""
        sections = "".join(self._section(place, name) for place, name in enumerate(self.statuses))
        statement = "".join(f"<p>{_text(line)}</p>" for line in self._statement())
        return _PAGE.format(
            title=f"A publication of {len(self)} questions",
            alarm=alarm,
            contents=self._table(),
            statement=statement,
            level=_text(self.guarantee.describe()),
            sections=sections,
        )

    def _section(self, place: int, name: str) -> str:
        head = f'<section id="q{place}"><h2>{_text(name)}</h2><p>{_text(self.targets[name])}</p>'
        if name not in self.results:
            return f'{head}<p class="alarm">{_text(FAILED)}</p></section>'
        result = self.results[name]
        table = result._repr_html_() if hasattr(result, "_repr_html_") else ""
        return (
            f"{head}{_picture(result)}{table}<details><summary>All that is said of it</summary><pre>{_text(result.summary())}</pre>"
            '</details><p><a href="#contents">contents</a></p></section>'
        )


def _picture(result: Any) -> str:
    """The result's own plot as SVG, where it has one."""
    from confide.results.report import svg

    try:
        return f'<div role="img" aria-label="plot">{svg(result.plot)}</div>'
    except Exception:  # a third party's result may have no plot; its table says all
        return ""


def _noise_share(result: Any) -> float:
    """The median share of privacy noise in the variances of a result, where it states them."""
    if result is None:
        return float("nan")
    frame = result.to_frame()
    for name in ("noise_share", "privacy_share"):
        if name in getattr(frame, "columns", ()):
            shares = frame[name].to_numpy(dtype=float)
            known = shares[np.isfinite(shares)]
            return float(np.median(known)) if len(known) else float("nan")
    return float("nan")


def _percent(share: Any) -> str:
    return "-" if share != share else f"{share:.1%}"


def _text(value: Any) -> str:
    return "\n".join(escape(clean(line)) for line in str(value).split("\n"))


_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>
<style>body{{font-family:system-ui,"Segoe UI",Roboto,Arial,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;line-height:1.5;
color:#1a1a1a;background:#fff;overflow-wrap:anywhere}}table{{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.8rem 0}}
td,th{{padding:.25rem .7rem;text-align:left;border-bottom:1px solid #ccc}}.alarm{{background:#8c1515;color:#fff;font-weight:bold;
padding:.6rem 1rem}}section{{border-top:1px solid #c4c9d0;margin-top:2rem}}svg{{width:100%;max-width:40rem;height:auto}}
pre{{overflow-x:auto;font-size:.85rem}}</style></head><body>
<h1>{title}</h1>{alarm}<h2 id="contents">Contents</h2>{contents}
<h2>What is protected</h2>{statement}<p>{level}</p>
{sections}
</body></html>
"""
