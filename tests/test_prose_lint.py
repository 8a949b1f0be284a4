"""Planted faults: each must be found, at its file and line; clean text must pass; a count may fall and never rise."""

import contextlib
import io
import json
import sys
import tempfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

ROOT = Path(__file__).parents[1]
SPEC = spec_from_file_location("prose_lint", ROOT / ".ci" / "prose_lint.py")
assert SPEC is not None and SPEC.loader is not None
prose_lint = module_from_spec(SPEC)
sys.modules["prose_lint"] = prose_lint
SPEC.loader.exec_module(prose_lint)

PAGE = """# A page

The interval holds, and the keeper of the records prints a noise share of 95 %.

A value of .5 in 40000 records is moved to its bounds anew, as one analyses neighbours.

- one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
  eighteen nineteen twenty and one two three four five six seven eight nine ten eleven.

```python
book = "book.db"  # .5 of it is code, and only old names count
```

<!-- prose-lint: off -->
Private estimates, as requested.
<!-- prose-lint: on -->
"""
MODULE = '''"""Counts of a data set."""

flag = Flag("y_clipping", "the response was clipped")
words = f"the {1} answer stands above its noise here"
query = "SELECT a FROM private_means WHERE x = .5"
'''
CLEAN = "# Means\n\nThe steward charges 6.2% of the budget because each release adds to the loss.\n"
EXPECTED = {
    ("docs/page.md", 3, "name:confidence_interval"),
    ("docs/page.md", 3, "name:data_steward"),
    ("docs/page.md", 3, "name:privacy_noise"),
    ("docs/page.md", 3, "number:percent-space"),
    ("docs/page.md", 5, "number:leading-zero"),
    ("docs/page.md", 5, "number:thousands"),
    ("docs/page.md", 5, "name:clipping"),
    ("docs/page.md", 5, "idiom"),
    ("docs/page.md", 5, "spelling"),
    ("docs/page.md", 7, "long-sentence"),
    ("docs/page.md", 11, "name:ledger"),
    ("src/confide/one.py", 1, "name:dataset"),
    ("src/confide/one.py", 3, "old-name:flag"),
    ("src/confide/one.py", 4, "name:noise"),
    ("src/confide/one.py", 4, "idiom"),
}


def run(root: Path, *options: str) -> tuple[int, str]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = prose_lint.main([str(root), *options])
    return code, printed.getvalue()


def forbidden(printed: str) -> list[tuple[str, str]]:
    """Forbidden names in printed output, which the glossary replaces: the rule, and what was found."""
    glossary = prose_lint.tomllib.loads((ROOT / "src/confide/glossary.toml").read_text(encoding="utf-8"))
    names = [rule for rule in prose_lint.rules(glossary) if rule.name.startswith("name:")]
    with tempfile.TemporaryDirectory() as folder:
        (place := Path(folder) / "printed.txt").write_text(printed, encoding="utf-8")
        found = prose_lint.check(
            list(prose_lint.output_blocks([str(place)])), names, glossary["style"]["sentence_words"]
        )
        return [(rule, text) for _, _, _, rule, text, _ in found]


def test_a_forbidden_name_in_output_is_found() -> None:
    assert forbidden("Means by region\nCounted by the keeper\n") == [("name:data_steward", "the keeper")]


def tree(root: Path, page: str, module: str) -> Path:
    (root / "docs").mkdir(parents=True)
    (root / "src" / "confide").mkdir(parents=True)
    (root / "docs" / "page.md").write_text(page)
    (root / "src" / "confide" / "one.py").write_text(module)
    return root


def test_planted_faults_are_found_at_their_line() -> None:
    with tempfile.TemporaryDirectory() as folder:
        code, printed = run(tree(Path(folder) / "a", PAGE, MODULE))
    found = set()
    for line in printed.splitlines():
        parts = line.split(": ")
        if len(parts) > 2 and ":" in parts[0]:
            path, _, number = parts[0].rpartition(":")
            found.add((path, int(number), parts[1]))
    assert code == 1
    assert found == EXPECTED, found ^ EXPECTED


def test_clean_text_passes() -> None:
    with tempfile.TemporaryDirectory() as folder:
        code, _ = run(tree(Path(folder) / "a", CLEAN, '"""Means of a dataset."""\n'))
    assert code == 0


def test_a_count_falls_and_never_rises() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root, kept = tree(Path(folder) / "a", PAGE, MODULE), Path(folder) / "kept.json"
        assert run(root, "--ratchet", str(kept))[0] == 0
        before = json.loads(kept.read_text())
        (root / "docs" / "page.md").write_text(CLEAN)
        assert run(root, "--ratchet", str(kept), "--update")[0] == 0
        assert sum(json.loads(kept.read_text()).values()) < sum(before.values())
        (root / "docs" / "page.md").write_text(PAGE)
        code, printed = run(root, "--ratchet", str(kept), "--update")
        assert code == 1
        assert "rose: docs spelling from 0 to 1" in printed
