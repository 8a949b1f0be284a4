"""A release's file with its results beside it, for readers that are not confide: R, a checker's script, an archive.

A release holds noisy statistics; `infer` makes estimates, intervals and tests of them, by a proof of its own for each method. Who reads the
file without confide would have to do that again. So the results are written into the same file, outside its body: the release is the same,
with the same SHA-256, `Release.load` reads it as ever, and anyone can check the results by inferring them again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confide._version import __version__
from confide.core import Release
from confide.core.codec import plain
from confide.core.exact import canonical_json, digest
from confide.engine import infer
from confide.errors import PlanError


def write_results(release: Release, path: str | Path, alpha: float | None = None) -> Path:
    """Write the file of a release with its results in it, which R's package `confide` reads; returns its path.

    alpha: intervals are at level 1 - alpha, .05 when left out. Raises `PlanError` when the file cannot be written.

    >>> import confide as cf, tempfile
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1)})
    >>> data = cf.read(schema.sample(500, seed=1), schema)
    >>> release = cf.release(cf.tables.Means("x", inference="population"), data, cf.GDP(1.0), ledger=None)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cf.Release.load(cf.results.write_results(release, f"{folder}/release.json")) == release
    True
    """
    target, result = Path(path), infer(release)
    level = {} if alpha is None else {"alpha": alpha}
    try:
        target.write_text(with_results(release, json.loads(result.to_json(**level))), encoding="utf-8", newline="")
    except OSError as error:
        raise PlanError(
            f"the release cannot be written to {str(target)!r}: {error.strerror}; give a file in a folder that exists"
        ) from None
    return target


def with_results(release: Release, result: Mapping[str, Any]) -> str:
    """The text of that file, with a result of the release as JSON reads it; what is not finite becomes null."""
    found = plain(result)
    own = {"by": f"confide {__version__}", "result": found, "sha256": digest(found)}
    return canonical_json({**json.loads(release.to_json()), "results": own}) + "\n"
