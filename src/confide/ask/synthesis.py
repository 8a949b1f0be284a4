"""Synthetic files with their release: `synthesize` makes them, `refit` reads the intervals that belong to them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from confide import engine
from confide._helpers import near_match
from confide.ask.one_call import LEFT_OUT, checked_ledger
from confide.core import Noise, Release, ResultOptions, Source, statements_hold
from confide.core.allowance import checked_privacy
from confide.errors import NoResult, PlanError, ReleaseError
from confide.guarantees import Guarantee
from confide.ledger import Ledger
from confide.methods.regression.least_squares.method import LeastSquares
from confide.methods.synthesis.files import Synthetic, SyntheticData, check_place, load
from confide.methods.synthesis.model import Matrix, Options
from confide.methods.synthesis.table import SyntheticTable
from confide.results import Estimates
from confide.schema import ModelMatrix, Schema
from confide.sources import read

_SETTINGS = tuple(
    field.name for field in fields(SyntheticTable) if field.init and field.name not in ("formula", "generator")
)


def synthesize(
    data: Any,
    formula: str,
    *,
    schema: Schema | str | os.PathLike[str] | None = None,
    privacy: Guarantee | None = None,
    ledger: Ledger | None = LEFT_OUT,
    path: str | os.PathLike[str] | None = None,
    rows: int | None = None,
    files: int = 1,
    generator: str = "calibrated",
    bounded: bool = False,
    noise: Noise | None = None,
    **settings: Any,
) -> SyntheticData:
    """One release, and a file of synthetic rows on which plain OLS returns its line.

    data: what `cf.read` gives, or anything it reads together with a schema; formula: "y ~ a + b"; path: where to write the table (.parquet
    or .csv) with its sidecar; rows: their number, None for the noisy number of records; files: several, each on a line of its own, for
    `combine`; generator: "calibrated", or "binagg" (noisy bin means; OLS on them is biased); bounded: keep the response in its bounds (OLS
    on the file is then off, the sidecar says by how much); settings: those of `confide.synthesis.SyntheticTable`. privacy and ledger have
    no default.

    The rows carry no interval: `cf.synthesis.refit(path)` reads it from the release beside them.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> made = synthesize(data, "y ~ x", privacy=cf.GDP(1.0), ledger=None)
    >>> list(made.frame.columns), made.status
    (['x', 'y'], 'valid')
    """
    request = checked_privacy(privacy)
    checked_ledger(ledger)
    for name in settings:
        if name not in _SETTINGS:
            known = (
                "schema",
                "privacy",
                "ledger",
                "path",
                "rows",
                "files",
                "generator",
                "bounded",
                "noise",
                *_SETTINGS,
            )
            raise PlanError(
                f"synthesize has no option {name!r}{near_match(name, known)}; its options are {', '.join(known)}; write "
                'synthesize(data, "y ~ x", privacy=cf.GDP(1.0), ledger=None)'
            )
    if path is not None:
        check_place(Path(path))
    source = _source(data, schema)
    method = SyntheticTable(formula, generator=generator, **settings)
    # options that cannot work are refused before anything is charged
    Options(rows, bounded).check(method.design_of(source.schema))
    _check_files(files)
    release = engine.release(method, source, request, ledger=ledger, noise=noise)
    made = method.build(release, rows=rows, files=files, bounded=bounded)
    if path is not None:
        made.save(Path(path))
    return made


def _source(data: Any, schema: Any) -> Source:
    if hasattr(data, "rereadable"):
        if schema is not None:
            raise PlanError("data from cf.read has its schema already; leave schema out")
        source: Source = data
        return source
    if schema is None:
        raise PlanError(
            f"data of type {type(data).__name__} needs a schema; write synthesize(data, formula, schema=schema, ...) or "
            "give what cf.read(data, schema) returns"
        )
    return read(data, schema)


def _check_files(files: Any) -> None:
    if isinstance(files, bool) or not isinstance(files, (int, np.integer)) or not 1 <= files <= 1_000:
        raise PlanError(f"files must be a whole number from 1 to 1000, got {files!r}; write files=5")


# --- reading back -------------------------------------------------------------------------------------------------------


def refit(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], formula: str | None = None) -> Estimates:
    """The regression table that belongs to a synthetic file: that of `least_squares`, from the release in its sidecar, never from the rows.

    path: a file that `synthesize` or `SyntheticData.save` wrote, or a list of several of one release (then `combine_synthetic`). formula: the one
    that was released, the default, or one with fewer of its terms, answered as `least_squares` answers it (of numeric terms by point
    estimates alone). The rows' content is checked against the sidecar.

    Raises `ReleaseError` when there is no sidecar, or the rows or the sidecar were changed; `PlanError` for a formula that the release
    does not hold.
    """
    if isinstance(path, (list, tuple)) and len(path) != 1:
        return combine_synthetic(path, formula)
    path = path[0] if isinstance(path, (list, tuple)) else path
    if not isinstance(path, (str, os.PathLike)):
        raise PlanError(
            f"refit takes the path of a synthetic file, or a list of them, got {type(path).__name__}; save the table and write "
            'cf.synthesis.refit("table.parquet")'
        )
    found = load(Path(path))
    method = _regression(found.release)
    return method.infer(found.release, _question(found.release, method.formula, formula))


def _regression(release: Release) -> LeastSquares:
    """The method whose table of the release is that of the line."""
    made = release.plan.method
    if made.name != SyntheticTable.name:
        raise _unusable(
            f"the release was made by {made.name!r}, not by {SyntheticTable.name!r}; read it with cf.infer(release)"
        )
    if made.version != SyntheticTable.version:
        raise _unusable(
            f"the release was made by {made.name} {made.version}, here is version {SyntheticTable.version}; install the version of "
            "confide that made it"
        )
    if made.parameters.get("generator") != "calibrated":
        raise PlanError(
            'the file was made with generator="binagg", which releases no line; for intervals make one with '
            'cf.synthesize(data, formula, generator="calibrated", ...)'
        )
    if not statements_hold(release.plan.event, release.guarantees):
        raise _unusable(
            "the release states a guarantee that its own spends exceed: the sidecar was altered; ask for the original"
        )
    return SyntheticTable(made.parameters["formula"], term_bounds=made.parameters.get("term_bounds")).regression


def _unusable(message: str) -> ReleaseError:
    error = ReleaseError(message)
    error.exit_code = 3
    return error


def _question(release: Release, released: str, formula: str | None) -> ResultOptions | None:
    """The question that a formula asks of a release; None for the released one."""
    if formula is None or formula == released:
        return None
    schema = release.plan.declared
    asked, held = ModelMatrix.of(formula, schema, term_bounds=_bounds_for(release, formula)), _design(release)
    terms = ", ".join(term.name for term in held.terms)
    advice = f'the file was made for "{released}"; write cf.synthesis.refit(path) for it, or a formula with fewer of its terms ({terms})'
    if asked.response.name != held.response.name:
        raise PlanError(f"the release holds the response {held.response.name!r}, not {asked.response.name!r}; {advice}")
    if asked.intercept != held.intercept:
        raise PlanError(f"the release holds a line {'with' if held.intercept else 'without'} an intercept; {advice}")
    names = tuple(term.name for term in asked.terms)
    unknown = [name for name in names if name not in held.names]
    if unknown:
        raise PlanError(f"the release does not hold {', '.join(unknown)}; {advice}")
    if set(names) == {term.name for term in held.terms}:
        return None
    if not names:
        raise PlanError(f"the formula {formula!r} has no terms; {advice}")
    return ResultOptions(subset=names)


def _bounds_for(release: Release, formula: str) -> dict[str, Any] | None:
    """The released bounds of derived terms that the formula has as well."""
    given = release.plan.method.parameters.get("term_bounds") or {}
    squeezed = "".join(formula.split())
    return {name: pair for name, pair in given.items() if "".join(name.split()) in squeezed} or None


def combine_synthetic(paths: Sequence[str | os.PathLike[str]], formula: str | None = None) -> Estimates:
    """Several files of one release combined: OLS on each, and the spread between them.

    File j lies on a line theta_j drawn from N(theta, V), V the covariance of the released line (sampling and privacy noise), and OLS on
    it returns theta_j exactly. So the mean q of the m solutions is N(theta, V/m) around the released line, their covariance b estimates
    V, and q - beta has the covariance (1 + 1/m) V. V itself is known with d degrees of freedom, so that b has about 1/(1/(m-1) + 1/d) of
    them: intervals q +- (t sqrt((1 + 1/m) b_jj) + the bound on the bias that the table of the release states). The rule for fully
    synthetic data of Raghunathan, Reiter and Rubin 2003, (1 + 1/m) b - u with u the mean of the variances that OLS states, takes away the
    sampling of rows around theta_j; these files have none, so nothing is to be taken away. The table of `refit(paths[0])` comes from the
    same release, with narrower intervals: this one is for checking what users of the files alone can do.

    Raises `PlanError` for fewer than two files or files of different releases, `NoResult` when the release has no valid covariance to
    draw lines from, and what `refit` raises.
    """
    if len(paths) < 2:
        raise PlanError(
            'combine takes at least two files of one release; make them with files=5, or write cf.synthesis.refit("table.parquet")'
        )
    found = [load(Path(path)) for path in paths]
    first = found[0].release
    if any(one.release.sha256 != first.sha256 for one in found):
        raise PlanError("the files belong to different releases; combine those that one call of cf.synthesize wrote")
    numbers = [one.facts.get("file") for one in found]
    if len(set(numbers)) < len(numbers):
        raise PlanError("a file was given twice; give each file of the release once")
    method = _regression(first)
    result = method.infer(first, _question(first, method.formula, formula))
    if not all(one.facts.get("drawn_line") for one in found):
        raise NoResult(
            "the files were made on one line, because the release gives no valid covariance or only one file was asked for; "
            'write cf.synthesis.refit("table.parquet")'
        )
    if len(result.names) < len(_design(first).names):
        raise PlanError(
            "files are combined for the released formula, whose lines were drawn; for fewer terms write cf.synthesis.refit(path, formula)"
        )
    return _combined(found, result)


def _design(release: Release) -> ModelMatrix:
    parameters = release.plan.method.parameters
    schema = release.plan.declared
    return ModelMatrix.of(parameters["formula"], schema, term_bounds=parameters.get("term_bounds"))


def _combined(found: Sequence[Synthetic], result: Estimates) -> Estimates:
    design, m = _design(found[0].release), len(found)
    each = np.array([Matrix.of(design.matrix(one.frame)).fitted(design.response_of(one.frame)) for one in found])
    between = np.atleast_2d(np.cov(each.T, ddof=1)).reshape((len(design.names),) * 2)
    covariance = (1 + 1 / m) * between
    stated = _stated_variances(found, design, each)
    rubin = (1 + 1 / m) * np.diag(between) - stated
    df = 1 / (1 / (m - 1) + 1 / np.asarray(result.df))
    grown = np.diag(covariance) / np.diag(result.covariance)
    facts = (
        ("Files", f"{m}, at most {m - 1} degrees of freedom"),
        ("Rubin's rule", f"{sum(rubin <= 0)} of {len(rubin)} variances at most 0; not used, see combine"),
    )
    return Estimates(
        method=f"combined {found[0].facts.get('method', '')}".strip(),
        response=result.response,
        names=result.names,
        estimates=each.mean(axis=0),
        covariance=covariance,
        df=df,
        bias=result.bias,
        sampling_df=result.sampling_df,
        noise_variance=result.noise_variance * grown,
        status="valid",
        reason="",
        flags=(),
        requested=result.requested,
        guarantee=result.guarantee,
        target=result.target,
        intervals_for=result.intervals_for + f"; the spread of {m} synthetic files stands for both",
        release_sha256=result.release_sha256,
        heading=f"{m} synthetic files combined",
        facts=facts,
        simulated=result.simulated,
        legend=(("Noise share", "that of the release; the files do not tell it apart from sampling"),),
    )


def _stated_variances(found: Sequence[Synthetic], design: ModelMatrix, each: Any) -> Any:
    """The mean over the files of the variances that OLS states on the rows, which are too small for any use but this comparison."""
    total = np.zeros(len(design.names))
    for one, solution in zip(found, each, strict=True):
        matrix = design.matrix(one.frame)
        rest = design.response_of(one.frame) - matrix @ solution
        s2 = float(rest @ rest) / max(len(matrix) - matrix.shape[1], 1)
        total += s2 * np.diag(np.linalg.pinv(matrix.T @ matrix))
    return total / len(found)
