#!/usr/bin/env python3
"""Check the prose of confide against glossary.toml: forbidden names, long sentences, numbers, spelling, idioms, old names in code.

    python prose_lint.py ROOT                          all findings, file:line, and the counts
    python prose_lint.py ROOT --output out/*.txt       printed output of commands is checked, too
    python prose_lint.py ROOT --ratchet prose.json     fail where a count is above the one kept in the file
    python prose_lint.py ROOT --ratchet prose.json --update    keep the lower counts; a count never rises

Read are README.md, SECURITY.md, CONTRIBUTING.md, CHANGELOG.md, docs/**/*.md, evidence/**/*.md, the docstrings and string constants of
src/confide/**/*.py, and its templates (*.j2). Addresses are skipped. Code blocks and inline code are checked for old names of
options, functions and files; a block marked ```text is output and is checked for all names. A paragraph may be wrapped anywhere.
Between `<!-- prose-lint: off -->` and `<!-- prose-lint: on -->` nothing is checked; in Python a line with `# prose-lint: off`
is skipped. When a rule is added, delete the ratchet file and write it again in the same commit.

Exit code 1: a count rose; without --ratchet: there is a finding. Standard library only.
"""

from __future__ import annotations

import argparse
import ast
import bisect
import collections
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

AREAS = ("docs", "docstrings", "strings", "templates", "output")
CODE = "code"  # commands and examples in docs: checked for old names of options, functions and files alone
NUMBERS = {
    "leading-zero": (r"(?<![\w.,)\]}/-])\.\d+\b", "write 0.5, not .5"),
    "percent-space": (r"\d[\s\u00a0]+%(?![(}])", "write 95%, not 95 %"),
    "thousands": (r"(?<![\w.,:#/=+-])[1-9]\d{4,}(?![\w/=]|[.,]\d)", "write 40,000, not 40000"),
    "half-open-interval": (r"\+/-", "write ± or give low and high"),
}
# A string that is read by a machine and by nobody else.
MACHINE = re.compile(
    r"^\s*(?:SELECT|INSERT|CREATE|UPDATE|DELETE|PRAGMA|WITH|BEGIN|DROP|ALTER|LOCK|GRANT|REVOKE|<[a-z!]|[\[{(^\\])", re.I
)
SECTION = re.compile(r"^\s*(?:-{3,}|={3,}|~{3,})\s*$")


@dataclass(frozen=True)
class Rule:
    """One pattern with what is wanted in its place."""

    name: str
    pattern: re.Pattern[str]
    better: str
    allow: tuple[re.Pattern[str], ...] = ()
    areas: tuple[str, ...] = AREAS


@dataclass
class Block:
    """A paragraph, list item, cell or string: its text on one line, and the line of the file at each offset."""

    path: str
    area: str
    prose: bool = True
    text: str = ""
    starts: list[tuple[int, int]] = field(default_factory=list)

    def add(self, line: int, words: str) -> None:
        self.text += " " if self.text else ""
        self.starts.append((len(self.text), line))
        self.text += words

    def line(self, offset: int) -> int:
        return next((line for start, line in reversed(self.starts) if start <= offset), self.starts[0][1])


def rules(glossary: dict) -> list[Rule]:
    """Every rule that is a pattern: names, idioms, spelling, numbers."""
    made = []
    for term in glossary["term"]:
        allow = tuple(re.compile(one, re.I | re.M) for one in term.get("allow", ()))
        areas = tuple(term.get("areas", (*AREAS, CODE) if term["kind"] in ("option", "api", "file") else AREAS))
        made += [
            Rule(f"name:{term['id']}", re.compile(one, re.I | re.M), term["term"], allow, areas)
            for one in term.get("forbidden", ())
        ]
    made += [Rule("idiom", re.compile(one, re.I | re.M), better) for one, better in glossary["idioms"].items()]
    made += [
        Rule("spelling", re.compile(one, re.I | re.M), f"US spelling: {better}")
        for one, better in glossary["spelling"].items()
    ]
    return made + [Rule(f"number:{name}", re.compile(one, re.M), better) for name, (one, better) in NUMBERS.items()]


# --- text in blocks ------------------------------------------------------------------------------------------------------


def plain(line: str) -> str:
    """A line of Markdown or of a docstring without code, addresses and marks; code stays as one word."""
    line = re.sub(r"``[^`]*``|`[^`]*`", "CODE", line)
    line = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", line)
    line = re.sub(r"https?://\S+", "URL", line)
    return re.sub(r"\*\*|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)", "", line)


def paragraphs(path: str, area: str, lines: list[tuple[int, str]], *, markdown: bool) -> Iterator[Block]:
    """Blocks of prose: paragraphs, list items, table cells; blocks of output apart; code left out."""
    block, fence, off, indent = Block(path, area), "", False, 0
    for number, line in lines:
        if "prose-lint: off" in line or "prose-lint: on" in line:
            off = "prose-lint: off" in line
            continue
        mark = re.match(r"\s*(```+|~~~+)\s*(\w*)", line) if markdown else None
        if mark:
            yield block
            block = Block(path, area)
            fence = "" if fence else (mark[2] or "code")
            continue
        if off:
            continue
        spans = (
            [line] if fence and fence != "text" else re.findall(r"`([^`]+)`", line) if markdown and not fence else []
        )
        for span in spans:
            own = Block(path, CODE, prose=False)
            own.add(number, span)
            yield own
        if fence and fence != "text":
            continue
        if fence == "text":  # output that a page shows: a line is a block
            own = Block(path, area, prose=False)
            own.add(number, line.rstrip())
            yield own
            continue
        bare = line.strip()
        code = not markdown and bare.startswith((">>>", "..."))
        if code:
            indent = 1  # what follows up to an empty line is the answer of the example
        if not bare or code or indent or SECTION.match(bare) or bare.startswith(("#", "|", ":::", "!!!", "<")):
            yield block
            block = Block(path, area)
            indent = indent if bare else 0
            if bare.startswith("|") and not set(bare) <= set("|-: "):
                for cell in bare.strip("|").split("|"):
                    own = Block(path, area)
                    own.add(number, plain(cell.strip()))
                    yield own
            elif bare.startswith("#") and markdown:
                own = Block(path, area)
                own.add(number, plain(bare.lstrip("# ")))
                yield own
            continue
        if re.match(r"\s*(?:[-*+]|\d+[.)])\s", line) or (not markdown and re.match(r"\s*[\w, ]+ : \S", line)):
            yield block
            block = Block(path, area)
        block.add(number, plain(re.sub(r"^\s*(?:[-*+]|\d+[.)])\s+", "", line).strip()))
    yield block


def markdown_blocks(root: Path) -> Iterator[Block]:
    pages = [root / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    for page in [*pages, *sorted((root / "docs").rglob("*.md")), *sorted((root / "evidence").rglob("*.md"))]:
        if page.exists():
            lines = list(enumerate(page.read_text(encoding="utf-8").splitlines(), 1))
            yield from paragraphs(str(page.relative_to(root)), "docs", lines, markdown=True)


def python_blocks(root: Path, old: dict[str, dict[str, str]]) -> Iterator[Block | tuple]:
    """Docstrings and strings of every module; old names of flags, columns and statuses as findings."""
    for module in sorted((root / "src" / "confide").rglob("*.py")):
        path, source = str(module.relative_to(root)), module.read_text(encoding="utf-8")
        nodes, raw = list(ast.walk(ast.parse(source))), source.splitlines()
        documents: set[int] = set()
        inside: set[int] = set()
        for node in nodes:
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
                first = node.body[0]
                if (
                    isinstance(first, ast.Expr)
                    and isinstance(first.value, ast.Constant)
                    and isinstance(first.value.value, str)
                ):
                    documents.add(id(first.value))
                    lines = enumerate(first.value.value.splitlines(), first.value.lineno)
                    yield from paragraphs(path, "docstrings", list(lines), markdown=False)
            yield from old_names(path, node, old)
        for node in nodes:
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "X" for part in node.values]
                inside.update(id(part) for part in ast.walk(node))
                yield from string(path, node.lineno, "".join(map(str, parts)), raw)
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents | inside:
                yield from string(path, node.lineno, node.value, raw)


def string(path: str, line: int, text: str, raw: list[str]) -> Iterator[Block]:
    """A string constant of four words or more that a person may read."""
    if len(text.split()) < 4 or MACHINE.match(text) or "prose-lint: off" in raw[line - 1]:
        return
    yield from paragraphs(path, "strings", [(line, one) for one in text.splitlines()], markdown=False)


def old_names(path: str, node: ast.AST, old: dict[str, dict[str, str]]) -> Iterator[tuple]:
    """Names of flags, columns and statuses that the glossary has renamed, where code makes or compares them."""
    found: list[tuple[str, ast.expr]] = []
    if isinstance(node, ast.Call) and node.args:
        called = getattr(node.func, "id", getattr(node.func, "attr", ""))
        found += [({"Flag": "flag", "Column": "column"}[called], node.args[0])] if called in ("Flag", "Column") else []
    if isinstance(node, ast.keyword) and node.arg in ("status", "flags", "flag"):
        found += [("status" if node.arg == "status" else "flag", one) for one in ast.walk(node.value)]
    if isinstance(node, ast.Compare) and getattr(node.left, "attr", getattr(node.left, "id", "")) == "status":
        found += [("status", one) for side in node.comparators for one in ast.walk(side)]
    for kind, value in found:
        if isinstance(value, ast.Constant) and value.value in old[kind]:
            yield path, value.lineno, "strings", f"old-name:{kind}", str(value.value), old[kind][value.value]


def template_blocks(root: Path) -> Iterator[Block]:
    for page in sorted((root / "src" / "confide").rglob("*.j2")):
        if page.name.endswith((".css.j2", ".js.j2")):
            continue
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            words = re.sub(
                r"\s+", " ", re.sub(r"\{[%#].*?[%#]\}|<[^>]*>", " . ", re.sub(r"\{\{.*?\}\}", "X", line))
            ).strip(" .")
            if len(words.split()) > 2:
                block = Block(str(page.relative_to(root)), "templates")
                block.add(number, words)
                yield block


def output_blocks(files: list[str]) -> Iterator[Block]:
    for name in files:
        for number, line in enumerate(Path(name).read_text(encoding="utf-8").splitlines(), 1):
            block = Block(name, "output", prose=False)
            block.add(number, line.rstrip())
            yield block


_SEPARATOR = "\n\0\n"

# --- findings ------------------------------------------------------------------------------------------------------------


_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|et al|vs|cf|Fig|No|approx|resp|std|err|[A-Z])\.$")


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Sentences with their offsets; an abbreviation or an initial ends none."""
    start = 0
    for end in re.finditer(r"[.!?:]['\")\]]*\s+(?=[\"'(\[]?[A-Z0-9X`])", text):
        if text[end.start()] == ":" or _ABBREVIATION.search(text[start : end.start() + 1]):
            continue
        yield start, text[start : end.end()].strip()
        start = end.end()
    yield start, text[start:].strip()


def words_in(sentence: str) -> int:
    return sum(any(letter.isalnum() for letter in word) for word in sentence.split())


def needed(pattern: str) -> str:
    """The longest run of plain characters that every match holds, in lower case; "" where that is not plain to see."""
    runs, run, depth, at = [], "", 0, 0
    while at < len(pattern):
        one, at = pattern[at], at + 1
        if one == "\\":
            one, at = ("" if pattern[at] not in ".-^()[]|" else pattern[at]), at + (3 if pattern[at] == "x" else 1)
        elif one == "[":
            one, at = "", pattern.index("]", at + 1) + 1
        elif one in "()":
            one, depth = "", depth + (1 if one == "(" else -1)
        elif one == "|" and not depth:
            return ""
        elif one in "?*+{":
            run, one = run[:-1], ""  # what is before it may be absent
        elif one in "^$.}|":
            one = ""
        if depth or not one:
            runs.append(run)
            run = ""
        else:
            run += one
    return max([*runs, run], key=len).lower()


def hits(pattern: re.Pattern[str], whole: str, lower: str, starts: list[int]) -> Iterator[re.Match[str]]:
    """Every match; searched only in blocks that hold the pattern's plain characters, where it has some."""
    plain_part = needed(pattern.pattern)
    if len(plain_part) < 3 or len(lower) != len(whole):
        yield from pattern.finditer(whole)
        return
    at, last = lower.find(plain_part), -1
    while at >= 0:
        number = bisect.bisect_right(starts, at) - 1
        end = starts[number + 1] - len(_SEPARATOR) if number + 1 < len(starts) else len(whole)
        if number != last:
            yield from pattern.finditer(whole, starts[number], end)
        at, last = lower.find(plain_part, end), number


def check(blocks: list[Block], made: list[Rule], most: int) -> Iterator[tuple]:
    """All findings in blocks. Each pattern is searched once in the text of all of them together, which is what makes it quick."""
    whole, starts = _SEPARATOR.join(block.text for block in blocks), [0]
    for block in blocks[:-1]:
        starts.append(starts[-1] + len(block.text) + len(_SEPARATOR))
    lower = whole.lower()
    for rule in made:
        for hit in hits(rule.pattern, whole, lower, starts):
            number = bisect.bisect_right(starts, hit.start()) - 1
            block, offset = blocks[number], hit.start() - starts[number]
            near = block.text[max(0, offset - 30) : offset + len(hit[0]) + 30]
            table = not block.prose and rule.name == "number:thousands"
            if table or block.area not in rule.areas or any(one.search(near) for one in rule.allow):
                continue
            yield block.path, block.line(offset), block.area, rule.name, hit[0].strip(), rule.better
    for block in blocks:
        for offset, sentence in sentences(block.text) if block.prose else ():
            if (length := words_in(sentence)) > most:
                yield (
                    block.path,
                    block.line(offset),
                    block.area,
                    "long-sentence",
                    f"{length} words: {sentence[:60]}...",
                    f"at most {most} words",
                )


def ratchet(counts: dict[str, int], path: Path, *, update: bool) -> int:
    """1 where a count is above the kept one. A file that is not there is written."""
    kept = json.loads(path.read_text()) if path.exists() else dict(counts)
    risen = {name: (kept.get(name, 0), now) for name, now in counts.items() if now > kept.get(name, 0)}
    for name, (was, now) in sorted(risen.items()):
        print(f"rose: {name} from {was} to {now}")
    if update or not path.exists():
        lower = {name: min(was, counts.get(name, 0)) for name, was in kept.items()}
        path.write_text(json.dumps({name: n for name, n in sorted(lower.items()) if n}, indent=1) + "\n")
    return 1 if risen else 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check the prose of confide against its glossary.")
    parser.add_argument("root", type=Path)
    parser.add_argument("--glossary", type=Path, default=Path(__file__).parents[1] / "src/confide/glossary.toml")
    parser.add_argument("--output", nargs="*", default=[], help="files of printed output")
    parser.add_argument("--ratchet", type=Path, help="file of counts, which may only fall")
    parser.add_argument("--update", action="store_true", help="keep the lower counts in it")
    parser.add_argument("--quiet", action="store_true", help="counts alone")
    parser.add_argument("--only", default="", help="rules that begin with this, such as name: or number:")
    options = parser.parse_args(arguments)
    glossary = tomllib.loads(options.glossary.read_text(encoding="utf-8"))
    made, most = rules(glossary), glossary["style"]["sentence_words"]
    old: dict[str, dict[str, str]] = {"flag": {}, "column": {}, "status": {}}
    for term in glossary["term"]:
        if term["kind"] in old:
            own = term["id"].removeprefix(f"{term['kind']}_")
            old[term["kind"]].update({was: term.get("column", own) for was in term.get("was", ()) if was != own})
    found: list[tuple] = []
    length: dict[str, list[int]] = collections.defaultdict(list)
    sources = (
        markdown_blocks(options.root),
        python_blocks(options.root, old),
        template_blocks(options.root),
        output_blocks(options.output),
    )
    items = [item for source in sources for item in source]
    found += [item for item in items if isinstance(item, tuple)]
    blocks = [item for item in items if isinstance(item, Block) and item.text]
    found += check(blocks, made, most)
    for block in blocks:
        if block.prose:
            length[block.area] += [n for _, one in sentences(block.text) if (n := words_in(one)) > 2]
    found = [one for one in found if one[3].startswith(options.only)]
    if not options.quiet:
        for path, line, _, rule, text, better in sorted(found):
            print(f"{path}:{line}: {rule}: {text!r} -> {better}")
    counts = dict(collections.Counter(f"{area} {rule}" for _, _, area, rule, _, _ in found))
    totals = collections.Counter((area, rule.split(":")[0]) for _, _, area, rule, _, _ in found)
    heads = sorted({rule for _, rule in totals})
    print(f"{'':12s}" + "".join(f"{head:>15s}" for head in heads) + f"{'words/sentence':>16s}")
    for area in (*AREAS, CODE):
        if length[area] or any(totals[area, head] for head in heads):
            mean = f"{sum(length[area]) / len(length[area]):.1f}" if length[area] else "-"
            print(f"{area:12s}" + "".join(f"{totals[area, head]:15d}" for head in heads) + f"{mean:>16s}")
    if options.ratchet:
        return ratchet(counts, options.ratchet, update=options.update)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
