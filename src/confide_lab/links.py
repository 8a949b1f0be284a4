"""Links of the documentation: those inside lead to a file and a heading, those outside are well formed; `make links` tries the latter.

Tests and the site's build never use a network. `python -m confide_lab.links` lists every link that leads outside with the pages it stands
on, and asks each server once; where the environment has CI it lists alone.
"""

from __future__ import annotations

import os
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

__all__ = ["Link", "faults", "links", "main", "outside", "tried"]

_LINK = re.compile(
    r"\]\(\s*<?((?:[^()\s<>]|\([^()\s]*\))+)>?(?:\s+\"[^\"]*\")?\s*\)|(?<!\()<(https?://[^>\s]+)>|(?:href|src)=\"([^\"]+)\""
)
_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`[^`\n]*`")
_GONE = (404, 410)
_SECONDS = 10


@dataclass(frozen=True)
class Link:
    """A link of a page. target: as it is written; line: where, from 1."""

    target: str
    page: Path
    line: int

    @property
    def outside(self) -> bool:
        """Whether it leads out of the repository."""
        return urlsplit(self.target).scheme != ""


def links(page: Path) -> Iterator[Link]:
    """The links of a Markdown page, in its order; none of code, which is no link."""
    text = page.read_text()
    for hidden in (_FENCE, _CODE):
        text = hidden.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    for found in _LINK.finditer(text):
        yield Link(next(filter(None, found.groups())), page, text.count("\n", 0, found.start()) + 1)


def faults(link: Link) -> str:
    """What is wrong with a link as far as can be seen without a network; "" where nothing is.

    >>> faults(Link("http://arxiv.org/abs/1", Path("page.md"), 1))
    'is not https'
    >>> faults(Link("https://arxiv.org/abs/2009.01265", Path("page.md"), 1))
    ''
    """
    return _outside_faults(link.target) if link.outside else _inside_faults(link)


def _outside_faults(target: str) -> str:
    parts = urlsplit(target)
    if parts.scheme == "mailto":
        return "" if re.fullmatch(r"[^@\s]+@[^@\s]+\.[a-z]+", parts.path) else "is no address"
    if parts.scheme != "https":
        return "is not https"
    if not re.fullmatch(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}", parts.netloc):
        return "has no plain host"
    if re.search(r"[\s\"<>\\^`{|}]|[.,;:]$", target):
        return "has a character that is no part of an address"
    return ""


def _inside_faults(link: Link) -> str:
    place, _, anchor = link.target.partition("#")
    led = link.page.parent / place if place else link.page
    if not led.exists():
        return "leads to no file"
    if anchor and led.suffix == ".md" and anchor not in _anchors(led):
        return "leads to no heading"
    return ""


def _anchors(page: Path) -> set[str]:
    """Of a page's headings, as sites and repositories name them."""
    headings = re.findall(r"^#+ (.*)$", _FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", one.lower())).strip("-") for one in headings}


def outside(root: Path) -> dict[str, list[Link]]:
    """The links out of a checkout by their address: of the README and its neighbours, of the guides and the evidence, of the R package."""
    pages = sorted(
        [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("evidence/**/*.md"), *root.glob("r/**/*.md")]
    )
    found: dict[str, list[Link]] = {}
    for link in (one for page in pages for one in links(page) if one.outside):
        found.setdefault(link.target, []).append(link)
    return dict(sorted(found.items()))


def tried(target: str) -> int | None:
    """The status that a server answers with; None where no server was reached."""
    for method in ("HEAD", "GET"):  # some servers refuse to be asked for the head alone
        request = urllib.request.Request(target, method=method, headers={"User-Agent": "confide-links"})
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            if method == "GET" or error.code in _GONE:
                return error.code
        except (OSError, ValueError):
            return None
    return None


def main(root: Path = Path(), ask: Callable[[str], int | None] = tried) -> int:
    """List the links and try them; 1 where one is at fault or gone, else 0. A server that was not reached proves nothing."""
    alone = bool(os.environ.get("CI"))
    answers: list[int | None] = []
    wrong = 0
    for target, own in outside(root).items():
        fault = faults(own[0])
        answer = None if alone or fault or target.startswith("mailto:") else ask(target)
        answers.append(answer)
        wrong += bool(fault) or answer in _GONE
        said = fault or ("not tried" if alone else "not reached" if answer is None else str(answer))
        sys.stdout.write(f"{said:12} {target}  {', '.join(f'{one.page}:{one.line}' for one in own)}\n")
    reached = sum(answer is not None for answer in answers)
    ended = "; CI: none was tried" if alone else ""
    sys.stdout.write(f"{len(answers)} links, {reached} servers answered, {wrong} wrong{ended}\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
