"""The report of a publication: contents, a section for each analysis, one statement for the file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from html import escape
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from confide._helpers import clean, later, status_severity
from confide.core import Release, Result
from confide.errors import FileError, NoResult, PlanError
from confide.guarantees import GDP, Guarantee
from confide.guarantees.plain_words import plain_words
from confide.results.base import BaseResult
from confide.results.pages import export, table
from confide.results.pages.content import PUBLISHED, SIMULATED, box, boxed, notes, privacy_line
from confide.results.pages.table import Document, environment, view

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")


_NAMES = 20  # columns that a name has in the printed contents

# Notes that an analysis shares with its publication.
_SHARED = ("Status", "Reason", "Relation", "Release SHA")

#: The note of an analysis that failed after the charge.
FAILED = (
    "this analysis failed after the charge, and nothing of it was released. The failure may depend on the records, and no guarantee covers "
    "it; publishing this file publishes the failure too"
)


@dataclass(frozen=True, eq=False)
class Report:
    """The results of all analyses of a publication: `report["model"].summary()`, `report.report("index.html")`.

    results: by name; an analysis that failed after the charge has none, and its status is "failed". shares: of the cost, by analysis.
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
    intervals_for: str
    simulated: bool

    @classmethod
    def of(
        cls,
        release: Release,
        results: Mapping[str, Result],
        shares: Mapping[str, float],
        parts: Mapping[str, str] | None = None,
    ) -> Report:
        """The report of a release, from the results of its analyses. parts: the part of the plan that answers each analysis."""
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
            targets={name: results.get(name, child).target for name, child in children.items()},
            flags=("analyses_failed",) if len(results) < len(children) else (),
            requested=plan.requested,
            guarantee=release.charged,
            target=plan.target,
            intervals_for=plan.intervals_for,
            simulated=release.simulated,
        )

    def read_as(self, readings: Mapping[str, Callable[[Any], Result]]) -> Report:
        """The same release, with functions by analysis applied to their results, such as a test of a table."""
        found = {name: readings[name](one) if name in readings else one for name, one in self.results.items()}
        return replace(
            self,
            results=found,
            statuses={**self.statuses, **{name: one.status for name, one in found.items()}},
            targets={
                **self.targets,
                **{name: one.target for name, one in found.items()},
            },
        )

    @property
    def status(self) -> str:
        """ "valid" if every analysis is; the status that all share; else "partial"."""
        found = set(self.statuses.values())
        return "partial" if len(found) > 1 or "failed" in found else found.pop()

    @property
    def relation(self) -> str:
        """The neighboring relation of the guarantee."""
        return str(self.guarantee.relation)

    def __getitem__(self, name: str) -> Result:
        if name not in self.statuses:
            raise PlanError(f"the publication has no analysis {name!r}; it has: {', '.join(map(repr, self.statuses))}")
        if name not in self.results:
            raise NoResult(f"analysis {name!r}: {FAILED}")
        return self.results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.statuses)

    def __len__(self) -> int:
        return len(self.statuses)

    def keys(self) -> tuple[str, ...]:
        """The names of the analyses, in their order."""
        return tuple(self.statuses)

    def to_frame(self) -> pd.DataFrame:
        """The contents: a row for each analysis.

        Columns status, budget_share (of the cost), privacy_share (the median of the result's, NaN for none), where and target.
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
        return pd.DataFrame.from_dict(rows, orient="index", columns=heads).rename_axis("analysis")

    def to_json(self) -> str:
        """Contents and all results as strict JSON."""
        body = {
            "release_sha256": self.release_sha256,
            "status": self.status,
            "flags": list(self.flags),
            "guarantee": self.guarantee.to_dict(),
            "target": self.target,
            "intervals_for": self.intervals_for,
            "simulated": self.simulated,
            "analyses": {
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

    def to_markdown(self) -> str:
        """Contents and the table of each analysis as Markdown, each with its notes."""
        return "\n".join(map(export.markdown, self._documents()))

    def to_latex(self) -> str:
        """Contents and the table of each analysis as LaTeX, with the rules of the package booktabs."""
        return "\n".join(map(export.latex, self._documents()))

    def to_word(self, path: str | Path) -> Path:
        """Write contents and all tables as a Word file (.docx); returns its path. Needs the extra `word`."""
        export.word(self._documents(pictured=True), Path(path))
        return Path(path)

    def _documents(self, *, pictured: bool = False) -> list[Document]:
        """The contents, then the analyses with a table of this package's families."""
        rows = [
            (name, row.status, f"{row.budget_share:.1%}", _percent(row.privacy_share), self._called(name))
            for name, row in zip(self.statuses, self.to_frame().itertuples(index=False), strict=True)
        ]
        cells = tuple(tuple(clean(str(cell)) for cell in row) for row in rows)
        note = " ".join(
            [
                *([f"{SIMULATED}."] if self.simulated else []),
                *(f"{label}: {words}." for label, words in self._statement(whole=True)),
            ]
        )
        heads = ("analysis", "status", "% of cost", "privacy share", "content")
        contents = Document(self.title, cells, heads, clean(note))
        own = [one for one in self.results.values() if isinstance(one, BaseResult)]
        return [contents, *(export.document(one, one._alpha(None), pictured=pictured) for one in own)]

    def summary(self, *, verbose: bool = False) -> str:
        """The contents, the table of each analysis, then the statement for the file.

        verbose: each table with every fact and note that the report has.
        """
        lines = [self.title, self._published, "", *self._contents()]
        for name in self.statuses:
            one = self.results.get(name)
            if isinstance(one, BaseResult):
                seen = view(one, one._alpha(None))
                called = table.wrapped(f"{clean(name)}: {seen.title}", table.WIDEST)
                room = table.WIDEST - len(seen.size)
                beside = table.wrapped(called[-1], room - 2) == called[-1:]
                lines += [
                    "",
                    *called[:-1],
                    *([f"{table.padded(called[-1], room)}{seen.size}".rstrip()] if beside else [called[-1], seen.size]),
                    "",
                    table.text(one, one._alpha(None), verbose=verbose, alone=False),
                ]
            else:
                lines += (
                    ["", *table.wrapped(f"{name}: {FAILED}", table.WIDEST)]
                    if one is None
                    else ["", f"{name}:", one.summary()]
                )
        lines.append("")
        for label, words in self._statement(whole=verbose):
            lines += table.labelled(label, clean(words), table.WIDEST)
        return "\n".join(line if "\n" in line else clean(line) for line in lines)

    @property
    def title(self) -> str:
        """The heading of every rendering."""
        return f"Publication of {len(self)} {'analysis' if len(self) == 1 else 'analyses'}"

    @property
    def _published(self) -> str:
        return SIMULATED if self.simulated else PUBLISHED

    def _called(self, name: str) -> str:
        return str(getattr(self.results.get(name), "title", self.targets[name]))

    def _contents(self) -> list[str]:
        wide = min(max(8, *map(len, self.statuses)), _NAMES)
        room = table.WIDEST - wide - 29
        lines = [f"{'analysis':<{wide}}  {'status':<14}  {'% of cost':>9}  content", "-" * table.WIDEST]
        for name in self.targets:
            status, share = self.statuses[name].replace("_", " "), f"{self.shares[name]:.0%}"
            names, words = table.wrapped(clean(name), wide), table.wrapped(clean(self._called(name)), room)
            lines.append(f"{table.padded(names[0], wide)}  {status:<14}  {share:>9}  {words[0]}")
            lines += [
                f"{table.padded(more, wide)}{' ' * 29}{rest}".rstrip()
                for more, rest in zip_longest(names[1:], words[1:], fillvalue="")
            ]
        return lines

    def _statement(self, *, whole: bool) -> list[tuple[str, str]]:
        """What is true of all analyses. whole: with all digits of the release ID."""
        failed = [(name, FAILED) for name, status in self.statuses.items() if status == "failed"]
        return [
            ("Status", f"{self.status}{self._every}; each interval has its level separately, not all at once"),
            ("Intervals for", "the population, where not stated otherwise"),
            ("Privacy", privacy_line(self) + (f"; for all {len(self)} together" if len(self) > 1 else "")),
            *([("Split", self._split)] if whole and self._split else []),
            *failed,
            ("Release ID", self.release_sha256 if whole else self.release_sha256[:8]),
        ]

    @property
    def _every(self) -> str:
        return f" (all {len(self)})" if len(self) > 1 and len(set(self.statuses.values())) == 1 else ""

    @property
    def _split(self) -> str:
        """Why the mu of each analysis is what it is; "" for other guarantees, and for one analysis."""
        mus = {name: getattr(one.guarantee, "mu", None) for name, one in self.results.items()}
        mus = {name: mu for name, mu in mus.items() if isinstance(mu, float) and isinstance(self.guarantee, GDP)}
        if len(self) < 2 or not mus:
            return ""
        said = "; ".join(f"{name} {self.shares[name]:.0%}, mu = {mu:.3g}" for name, mu in mus.items())
        return f"the mu of an analysis is that of all, times the square root of its share of the cost: {said}"

    def plot(self) -> Any:
        """A publication has no single plot: `PlanError` names the call."""
        raise PlanError(
            "a publication has one picture for each analysis", f'write report["{next(iter(self.statuses))}"].plot()'
        )

    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML page with contents and a section for each analysis; returns its path."""
        try:
            Path(path).write_text(self._page(), encoding="utf-8")
        except OSError as error:
            raise FileError(
                f"the report cannot be written to {str(path)!r}: {error.strerror}",
                "give a file in a directory that exists",
            ) from None
        return Path(path)

    def _repr_html_(self) -> str:
        return self._table()

    def __repr__(self) -> str:
        return clean(
            f"<Report of {len(self)} {'analysis' if len(self) == 1 else 'analyses'}, status {self.status!r}, {self.guarantee}>"
        )

    # the page -------------------------------------------------------------------------------------------------------

    def _table(self) -> str:
        """The contents as HTML; on a narrow page each analysis is a card."""
        heads = ("analysis", "status", "% of cost", "privacy share", "subgroup", "content")
        rows = []
        for place, (name, row) in enumerate(zip(self.statuses, self.to_frame().itertuples(index=False), strict=True)):
            shares, what = (f"{row.budget_share:.1%}", _percent(row.privacy_share)), self._called(name)
            cells = (str(row.status).replace("_", " "), *shares, row.where or "all", what)
            rows.append(
                f'<tr role="row"><th scope="row" role="rowheader" class="name"><a href="#q{place}">{_text(name)}</a></th>'
                + "".join(
                    f'<td role="cell" class="name" data-label="{head}">{_text(cell)}</td>'
                    for head, cell in zip(heads[1:], cells, strict=True)
                )
                + "</tr>"
            )
        head = "".join(f'<th scope="col" role="columnheader" class="name">{text}</th>' for text in heads)
        return (
            f'<table role="table"><thead role="rowgroup"><tr role="row">{head}</tr></thead>'
            f'<tbody role="rowgroup">{"".join(rows)}</tbody></table>'
        )

    def _page(self) -> str:
        return (
            environment()
            .get_template("publication.html.j2")
            .render(
                title=self.title,
                simulated=SIMULATED if self.simulated else "",
                published=self._published,
                guarantee=clean(privacy_line(self)),
                contents=Markup(self._table()),
                statement=[(label, clean(words)) for label, words in self._statement(whole=True)],
                box=status_severity(self.status),
                status=f"{self.status.replace('_', ' ').upper()}{self._every}",
                level=clean(self.guarantee.describe()),
                meaning=clean(plain_words(self.guarantee)),
                sections=[self._section(name) for name in self.statuses],
            )
        )

    def _section(self, name: str) -> dict[str, Any]:
        """The section of an analysis. A third party's result that belongs to no family here renders itself."""
        own: dict[str, Any] = {"name": clean(name), "target": clean(self.targets[name])}
        if name not in self.results:
            return {**own, "failed": FAILED}
        result = self.results[name]
        ours = result if isinstance(result, BaseResult) else None
        return {
            **own,
            "failed": "",
            "table": None if ours is None else view(ours, ours._alpha(None)),
            "html": "" if ours is not None or not hasattr(result, "_repr_html_") else Markup(result._repr_html_()),
            "box": "good" if ours is None else box(ours),
            "boxed": [] if ours is None else _apart(ours),
            "notes": [] if ours is None else [one for one in notes(ours) if one[0] not in _SHARED],
            "picture": _picture(result),
            "caption": "" if ours is None else _caption(ours),
            "alt": "" if ours is None else _caption(ours, whole=True),
        }


def _apart(result: BaseResult) -> list[tuple[str, str]]:
    """What the box of an analysis says that is not true of most."""
    first, *more = boxed(result)
    return more if result.status == "valid" and result.inference == "population" else [first, *more]


def _picture(result: Any) -> Any:
    """The result's own plot as SVG, where it has one."""
    from confide.results.pages.plots import drawn
    from confide.results.pages.report import svg

    try:
        ours = isinstance(result, BaseResult)
        return svg(lambda: drawn(result, result._alpha(None), None, None, captioned=False) if ours else result.plot())
    except Exception:  # a third party's result may have no plot; its table says all
        return ""


def _caption(result: BaseResult, *, whole: bool = False) -> str:
    """What marks and whiskers are; whole: for those who do not see the picture."""
    from confide.results.pages.plots import alternative, caption

    return (alternative if whole else caption)(result, result._alpha(None))


def _noise_share(result: Any) -> float:
    """The median privacy share of a result, NaN for none."""
    if result is None:
        return float("nan")
    frame = result.to_frame()
    if "privacy_share" not in getattr(frame, "columns", ()):
        return float("nan")
    shares = frame["privacy_share"].to_numpy(dtype=float)
    known = shares[np.isfinite(shares)]
    return float(np.median(known)) if len(known) else float("nan")


def _percent(share: Any) -> str:
    return table.DASH if share != share else f"{share:.1%}"


def _text(value: Any) -> str:
    return "\n".join(escape(clean(line)) for line in str(value).split("\n"))
