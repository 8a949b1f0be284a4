"""What came out: every printed number with its record and verdict, item by item, and the shares of a paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scipy import stats

from confide_lab.experiment import Block, Experiment
from confide_lab.layouts import LETTER, RESTORED, Layout
from confide_lab.papers.catalogue import Item
from confide_lab.papers.plan import once
from confide_lab.quantities import Record

__all__ = [
    "Number",
    "Share",
    "layouts_of",
    "numbers_of",
    "reason_of",
    "restored_of",
    "share_of",
    "status_of",
    "unexplained",
    "with_printed",
]

WORDS = ("agrees", "differs", "undetermined", "not run")


@dataclass(frozen=True)
class Number:
    """A printed number: where it stands, and what is known of it here. word: a verdict, or "not run" with the reason."""

    item: Item
    block: str
    layout: str
    reading: str
    record: Record
    word: str
    reason: str


@dataclass(frozen=True)
class Share:
    """Counts of printed numbers by verdict."""

    counts: Mapping[str, int]

    @property
    def printed(self) -> int:
        """How many there are."""
        return sum(self.counts.values())

    def text(self) -> str:
        """One line.

        >>> Share({"agrees": 3, "differs": 1, "undetermined": 0, "not run": 0}).text()
        '3 agree (75%), 1 differ (25%)'
        """
        words = {"agrees": "agree", "differs": "differ"}
        parts = [f"{n} {words.get(w, w)} ({n / self.printed:.0%})" for w in WORDS if (n := self.counts[w])]
        return ", ".join(parts) or "no number is printed"


def numbers_of(item: Item, experiment: Experiment, records: Sequence[Record]) -> list[Number]:
    """Every printed number of an item once for each reading that shows it."""
    found = []
    for block in experiment.blocks:
        if item.blocks and block.name not in item.blocks:
            continue
        there = with_printed(block, [r for r in records if r["block"] == block.name])
        for layout in layouts_of(block, there):
            for record in layout.kept(there):
                if "paper" in record:
                    word, reason = record.get("verdict", "not run"), record.get("reason", "")
                    if word == "differs":
                        # what the verdict rests on (a heavy tail) is a reason to doubt it, none for the difference
                        reason = reason_of(item, record)
                    if word == "not run":
                        reason = block.missing(record["method"]) or _too_dear(experiment, block, record["method"])
                    found.append(Number(item, block.name, layout.title, layout.reading, record, word, reason))
    return by_chance(found)


def _too_dear(experiment: Experiment, block: Block, method: str) -> str:
    return f"not within the time of this run: one replication of every setting takes {once(experiment, block, method):.2g} s"


#: A number that is right is this rarely outside two standard errors; more than that are not put down to it where they are this unlikely.
_OUTSIDE, _RARE = 0.05, 0.01
#: What lies that many bands away is not put down to chance.
_BANDS = 1.75


def by_chance(found: Sequence[Number]) -> list[Number]:
    """The numbers of an item, where those of a table that differ for no known reason are told to be no more than chance gives.

    So it is where as many, or more, of the table's numbers without a known reason lie outside with a probability above 1 %, and none is
    further away than 1.75 bands, which are three and a half standard errors.
    """
    tables: dict[tuple[str, str], list[Number]] = {}
    for one in found:
        # of an exact number nothing is chance
        if not reason_of(one.item, one.record) and one.record.get("allowed") and one.record.get("error"):
            tables.setdefault((one.block, one.layout), []).append(one)
    reasons = {}
    for key, numbers in tables.items():
        differ = [one for one in numbers if one.word == "differs"]
        near = all(abs(one.record["value"] - one.record["paper"]) <= _BANDS * one.record["allowed"] for one in differ)
        if differ and near and stats.binom.sf(len(differ) - 1, len(numbers), _OUTSIDE) > _RARE:
            reasons[key] = (
                f"chance: {len(differ)} of {len(numbers)} numbers without another reason are outside, where 5% are expected"
            )
    return [
        replace(one, reason=reasons[one.block, one.layout])
        if one.word == "differs" and not one.reason and (one.block, one.layout) in reasons
        else one
        for one in found
    ]


def with_printed(block: Block, records: Sequence[Record]) -> list[Record]:
    """The records, and one without a value for each printed number that has none, in the order of the grid and the printed table."""
    by = {(*r["setting"].values(), r["method"], r["quantity"]): r for r in records}
    for key, printed in block.printed.items():
        if key not in by and len(key) == len(block.grid) + 2:
            setting = dict(zip(block.grid, key, strict=False))
            by[key] = {"setting": setting, "method": key[-2], "quantity": key[-1], "value": None, "error": None, "paper": printed.value,
                       "replications": 0, "block": block.name}  # fmt: skip
    names = [q.name for q in block.quantities]

    def at(key: tuple[Any, ...]) -> tuple[int, ...]:
        *settings, method, quantity = key
        places = [_place(values, value) for values, value in zip(block.grid.values(), settings, strict=False)]
        return (*places, _place(block.methods, method), _place(names, quantity))

    return [by[key] for key in sorted(by, key=at)]


def _place(values: Sequence[Any], value: Any) -> int:
    return list(values).index(value) if value in values else len(values)


def reason_of(item: Item, record: Mapping[str, Any]) -> str:
    """Why a number differs, "" where the catalogue does not say."""
    return next((reason.text for reason in item.reasons if reason.fits(record)), "")


def share_of(found: Sequence[Number], reading: str = LETTER) -> Share:
    """Counts over one reading; restored: over all printed numbers, as `restored_of` has them."""
    counts = Counter(number.word for number in _read(found, reading))
    return Share({word: counts[word] for word in WORDS})


def restored_of(found: Sequence[Number]) -> list[Number]:
    """Each printed number once, in the restored reading where a table has one and to the letter elsewhere; none where no table has one.

    A restored table prints the numbers of the letter's again, with other values of some settings: of those whose values the two have not
    in common. A number is the same where the rest agrees: item, printed value, quantity, method and settings.
    """
    tables: dict[tuple[str, str, str], list[Number]] = {}
    for one in found:
        if one.reading == RESTORED:
            tables.setdefault((one.item.number, one.block, one.layout), []).append(one)
    rest = [one for one in found if one.reading == LETTER]
    kept = []
    for numbers in tables.values():
        letter = [one for one in found if one.reading == LETTER and one.item.number == numbers[0].item.number]
        ours, theirs = (_values_of(part) for part in (numbers, letter))
        common = {name for name in ours if ours[name] & theirs.get(name, set())}
        for one in numbers:
            place = next((k for k, other in enumerate(rest) if _same(one, other, common)), None)
            if place is not None:
                del rest[place]
                kept.append(one)
    return [*kept, *rest] if kept else []


def _values_of(found: Sequence[Number]) -> dict[str, set[Any]]:
    values: dict[str, set[Any]] = {}
    for one in found:
        for name, value in _coordinates(one).items():
            values.setdefault(name, set()).add(value)
    return values


def _coordinates(one: Number) -> dict[str, Any]:
    return {**one.record["setting"], "method": one.record["method"]}


def _same(one: Number, other: Number, common: set[str]) -> bool:
    """Whether two readings show one printed number."""
    mine, theirs = _coordinates(one), _coordinates(other)
    return (
        one.item.number == other.item.number
        and one.record["paper"] == other.record["paper"]
        and one.record["quantity"] == other.record["quantity"]
        and all(mine[name] == theirs.get(name) for name in common)
    )


def unexplained(found: Sequence[Number], reading: str = LETTER) -> int:
    """How many differ for no known reason."""
    return sum(one.word == "differs" and not one.reason for one in _read(found, reading))


def _read(found: Sequence[Number], reading: str) -> list[Number]:
    return restored_of(found) if reading == RESTORED else [one for one in found if one.reading == reading]


def status_of(item: Item, found: Sequence[Number], ran: bool) -> str:
    """The item in a few words: what a reader of the index sees."""
    if item.cannot:
        return f"cannot be run: {item.cannot}"
    if not item.experiment:
        return {"holds": "holds", "fails": "fails", "": "open"}.get(item.holds, item.holds)
    share = share_of(found)
    if not share.printed and item.holds:
        return item.holds
    if not share.printed:
        return "drawn: the paper prints no number" if ran else "not run"
    if share.counts["not run"] == share.printed:
        return "not run"
    if share.counts["differs"]:
        letter = f"does not reproduce: {share.counts['differs']} of {share.printed} differ"
        again = share_of(found, RESTORED)
        if not again.printed:
            return letter
        return f"as printed it {letter}; restored: {again.counts['agrees']} agree, {again.counts['differs']} differ"
    if share.counts["agrees"] >= 0.5 * share.printed:
        return "reproduces"
    return "undetermined"


def layouts_of(block: Block, records: Sequence[Record]) -> tuple[Layout, ...]:
    """The block's own layouts, else one for each quantity that a paper prints, or for the first one: settings by methods."""
    if block.layouts:
        return block.layouts
    printed = list(dict.fromkeys(r["quantity"] for r in records if "paper" in r))
    shown = printed or [r["quantity"] for r in records[:1]]
    labels = {q.name: q.label or q.name for q in block.quantities}
    return tuple(Layout(tuple(block.grid), ("method",), quantity=name, title=labels.get(name, name)) for name in shown)
