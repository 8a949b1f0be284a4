"""A release file with its results in it, for readers other than confide: R, a checker's script, an archive.

A release holds noisy statistics; `infer` makes estimates, intervals and tests of them, by a separate proof for each method. A reader
without confide would have to do that again. So the results are written into the same file, outside its body. The release stays the same,
with the same SHA-256, `Release.load` reads it as before, and anyone can check the results by inferring them again.
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
from confide.errors import FileError


def write_results(release: Release, path: str | Path, alpha: float | None = None) -> Path:
    """Write a release file with its results in it, for R and other readers.

    Parameters
    ----------
    release : Release
        The release, which stays the same, with the same release ID.
    path : str or Path
        File to write.
    alpha : float, optional
        One minus the level of the intervals. By default 0.05.

    Returns
    -------
    Path
        The path of the file.

    Raises
    ------
    FileError
        The file cannot be written.

    Examples
    --------
    >>> import confide as cf, tempfile
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1)})
    >>> data = cf.read(schema.sample(500, seed=1), schema)
    >>> method = cf.tables.Means("x", inference="population")
    >>> release = cf.release(method, data, cf.GDP(1.0), ledger=None)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = cf.results.write_results(release, f"{folder}/release.json")
    ...     cf.Release.load(path) == release
    True
    """
    target, result = Path(path), infer(release)
    level = {} if alpha is None else {"alpha": alpha}
    try:
        target.write_text(with_results(release, json.loads(result.to_json(**level))), encoding="utf-8", newline="")
    except OSError as error:
        raise FileError(
            f"the release cannot be written to {str(target)!r}: {error.strerror}", "give a file in a folder that exists"
        ) from None
    return target


def with_results(release: Release, result: Mapping[str, Any]) -> str:
    """The text of that file, with a result of the release as JSON. A number that is not finite becomes null."""
    found = plain(result)
    own = {"by": f"confide {__version__}", "result": found, "sha256": digest(found)}
    return canonical_json({**json.loads(release.to_json()), "results": own}) + "\n"
