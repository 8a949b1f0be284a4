"""Synthetic files with their release: `synthesize` writes them, `refit` and `treatment_effects` read the intervals that belong to them."""

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
from confide.methods.regression.linear_estimates import SharedEstimates
from confide.methods.synthesis.effects import TreatmentEffects, treatment_effects_of
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
    """Release a linear regression and write synthetic rows that reproduce it.

    Ordinary least squares on the rows returns the released coefficients. The rows
    carry no interval: `confide.synthesis.refit` reads it from the release in the
    sidecar file.

    Parameters
    ----------
    data : Source, table or path
        Records from `confide.read`, or what it reads together with `schema`.
    formula : str
        R-style formula, such as ``"y ~ a + b"``.
    schema : Schema or path, optional
        Schema of `data`, where it is not a Source.
    privacy : Guarantee
        Cost of the release, such as ``GDP(0.5)``. Required.
    ledger : Ledger or None
        Ledger to charge. None releases without accounting. Required.
    path : str or Path, optional
        File to write, .parquet or .csv, with its sidecar.
    rows : int, optional
        Number of rows. By default the number of records plus noise.
    files : int, default 1
        Number of files, each with coefficients drawn separately, for
        `confide.synthesis.combine_synthetic`.
    generator : {"calibrated", "binagg"}, default "calibrated"
        "binagg" draws noisy bin means, and least squares on them is biased.
    bounded : bool, default False
        Whether to clip the response to its bounds. Least squares on the rows then
        differs from the release, by an amount that the sidecar states.
    noise : Noise, optional
        Source of noise. Only simulations pass ``SimulatedNoise(seed)``, which
        protects no one.
    **settings : optional
        Further parameters of `confide.synthesis.SyntheticTable`.

    Returns
    -------
    SyntheticData
        ``frame`` with the rows, the release, the status, and ``save(path)``.

    Raises
    ------
    BudgetExceeded
        The cost does not fit the ledger. Nothing was drawn or charged.
    PlanError
        The formula, the path or a parameter is invalid. Nothing was charged.

    See Also
    --------
    confide.synthesis.refit : Coefficients with intervals, from the sidecar.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> made = cf.synthesize(data, "y ~ x", privacy=cf.GDP(1.0), ledger=None)
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
                f"synthesize has no option {name!r}{near_match(name, known)}; its options are {', '.join(known)}",
                'write synthesize(data, "y ~ x", privacy=cf.GDP(1.0), ledger=None)',
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
            raise PlanError("data from cf.read has its schema already", "leave schema out")
        source: Source = data
        return source
    if schema is None:
        raise PlanError(
            f"data of type {type(data).__name__} needs a schema",
            "write synthesize(data, formula, schema=schema, ...) or give what cf.read(data, schema) returns",
        )
    return read(data, schema)


def _check_files(files: Any) -> None:
    if isinstance(files, bool) or not isinstance(files, (int, np.integer)) or not 1 <= files <= 1_000:
        raise PlanError(f"files must be a whole number from 1 to 1000, got {files!r}", "write files=5")


# --- reading back -------------------------------------------------------------------------------------------------------


def refit(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], formula: str | None = None) -> Estimates:
    """Read the regression table of a synthetic file, from the release in its sidecar.

    The numbers come from the release, never from the rows. The content of the
    rows is checked against the sidecar.

    Parameters
    ----------
    path : str, Path or list of them
        File that `confide.synthesize` or ``SyntheticData.save`` wrote. Several
        files of one release are combined by `combine_synthetic`.
    formula : str, optional
        The released formula (the default), or one with fewer of its terms. With
        fewer numeric terms there are estimates without intervals.

    Returns
    -------
    Estimates
        Coefficients, standard errors, intervals, tests; status and flags.

    Raises
    ------
    ReleaseError
        There is no sidecar, or the rows or the sidecar were changed.
    PlanError
        The release does not hold the formula.

    See Also
    --------
    confide.synthesize : Write the file.

    Examples
    --------
    >>> import confide as cf, tempfile
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = cf.synthesize(data, "y ~ x", privacy=cf.GDP(1.0), ledger=None,
    ...                          path=f"{folder}/table.csv")
    ...     cf.synthesis.refit(f"{folder}/table.csv").params.index.tolist()
    ['Intercept', 'x']
    """
    if isinstance(path, (list, tuple)) and len(path) != 1:
        return combine_synthetic(path, formula)
    path = path[0] if isinstance(path, (list, tuple)) else path
    if not isinstance(path, (str, os.PathLike)):
        raise PlanError(
            f"refit takes the path of a synthetic file, or a list of them, got {type(path).__name__}",
            'save the table and write cf.synthesis.refit("table.parquet")',
        )
    found = load(Path(path))
    method = _regression(found.release)
    return method.infer(found.release, _question(found.release, method.formula, formula))


def treatment_effects(
    path: str | os.PathLike[str], treatment: str, *, control: str | None = None, formula: str | None = None
) -> TreatmentEffects:
    """Read the effects of a treatment from the release behind a synthetic file.

    Estimates the difference in the mean response between each arm of a trial and
    the control, at the same values of the other terms. Tests and intervals are
    for the population: they count sampling and privacy noise. The numbers come
    from the release, never from the rows, and nothing is charged.

    Parameters
    ----------
    path : str or Path
        File that `confide.synthesize` or ``SyntheticData.save`` wrote.
    treatment : str
        Column of the arms: categorical, or an integer column of two values.
    control : str, optional
        Arm that the others are compared with. By default the reference level.
    formula : str, optional
        A formula as `refit` takes it. By default the released one, which adjusts
        for its other terms.

    Returns
    -------
    TreatmentEffects
        One row for each other arm: effect, standard error, test, interval. With
        several arms also the test that none differs from the control.

    Raises
    ------
    PlanError
        The formula has no such arms, or has a product with the treatment.
    ReleaseError
        There is no sidecar, or the rows or the sidecar were changed.

    See Also
    --------
    refit : The whole regression table of the file.

    Notes
    -----
    Guarantee: post-processing of a release, at no cost. An effect is a difference
    of two coefficients of the population's least-squares line. With arms assigned
    at random it is the average effect of the treatment, whether the line is right
    or not. With a response of 0 and 1 it is a difference of risks. P-values are of
    each arm separately.

    References
    ----------
    Lin (2013), Agnostic notes on regression adjustments to experimental data,
    Annals of Applied Statistics 7.

    Examples
    --------
    >>> import confide as cf, tempfile, numpy as np
    >>> schema = cf.Schema({"arm": cf.Categorical(["control", "drug"]), "y": cf.Numeric(0, 10)})
    >>> generator = np.random.default_rng(1)
    >>> arm = generator.choice(["control", "drug"], 3_000)
    >>> y = 4 + 1.0 * (arm == "drug") + generator.normal(size=3_000)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = cf.synthesize({"arm": arm, "y": y}, "y ~ arm", schema=schema, privacy=cf.GDP(1.0),
    ...                          ledger=None, path=f"{folder}/trial.csv", noise=cf.noise.SimulatedNoise(1))
    ...     found = cf.synthesis.treatment_effects(f"{folder}/trial.csv", "arm")
    >>> found.names, bool(found.pvalues["drug - control"] < 0.01)
    (('drug - control',), True)
    """
    if not isinstance(path, (str, os.PathLike)):
        raise PlanError(
            f"treatment_effects takes the path of one synthetic file, got {type(path).__name__}",
            "every file of a release has it: give the first one",
        )
    fit = refit(path, formula)
    assert isinstance(fit, SharedEstimates)
    return treatment_effects_of(fit, treatment, control)


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
    """The options that a formula asks of a release; None for the released formula."""
    if formula is None or formula == released:
        return None
    schema = release.plan.declared
    asked, held = ModelMatrix.of(formula, schema, term_bounds=_bounds_for(release, formula)), _design(release)
    terms = ", ".join(term.name for term in held.terms)
    advice = f'the file was made for "{released}"; write cf.synthesis.refit(path) for it, or a formula with fewer of its terms ({terms})'
    if asked.response.name != held.response.name:
        raise PlanError(
            f"the release holds the response {held.response.name!r}, not {asked.response.name!r}", f"{advice}"
        )
    if asked.intercept != held.intercept:
        raise PlanError(f"the release holds a line {'with' if held.intercept else 'without'} an intercept", f"{advice}")
    names = tuple(term.name for term in asked.terms)
    unknown = [name for name in names if name not in held.names]
    if unknown:
        raise PlanError(f"the release does not hold {', '.join(unknown)}", f"{advice}")
    if set(names) == {term.name for term in held.terms}:
        return None
    if not names:
        raise PlanError(f"the formula {formula!r} has no terms", f"{advice}")
    return ResultOptions(subset=names)


def _bounds_for(release: Release, formula: str) -> dict[str, Any] | None:
    """The released bounds of derived terms that the formula has as well."""
    given = release.plan.method.parameters.get("term_bounds") or {}
    squeezed = "".join(formula.split())
    return {name: pair for name, pair in given.items() if "".join(name.split()) in squeezed} or None


def combine_synthetic(paths: Sequence[str | os.PathLike[str]], formula: str | None = None) -> Estimates:
    """Combine least squares on several synthetic files of one release.

    This shows what users of the files alone can do. `refit` on one file has
    narrower intervals, because it uses the release.

    Parameters
    ----------
    paths : sequence of str or Path
        At least two files of one release.
    formula : str, optional
        The released formula, which is the default.

    Returns
    -------
    Estimates
        Means of the coefficients over the files, with intervals.

    Raises
    ------
    PlanError
        There are fewer than two files, or files of different releases.
    NoResult
        The release has no valid covariance to draw coefficients from.
    ReleaseError
        A sidecar is missing, or the rows or the sidecar were changed.

    See Also
    --------
    refit : Coefficients from the release.

    Notes
    -----
    File j has coefficients theta_j drawn from N(theta, V), with V the covariance
    of the released coefficients (sampling and privacy noise). Least squares on it
    returns theta_j exactly. So the mean q of the m solutions is N(theta, V/m)
    around the released coefficients. Their covariance b estimates V, and q - beta
    has the covariance (1 + 1/m) V. Because V is known with d degrees of freedom,
    b has about 1/(1/(m-1) + 1/d) of them. Intervals are
    q +- (t sqrt((1 + 1/m) b_jj) + the bound on the bias that the release states).

    The rule for fully synthetic data of Raghunathan, Reiter and Rubin is
    (1 + 1/m) b - u, with u the mean of the variances that least squares states.
    It subtracts the sampling of rows around theta_j. These files have none, so
    nothing is subtracted.

    References
    ----------
    Raghunathan, Reiter and Rubin (2003), Multiple imputation for statistical
    disclosure limitation, JOS 19.

    Examples
    --------
    >>> import confide as cf, tempfile
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = cf.synthesize(data, "y ~ x", privacy=cf.GDP(1.0), ledger=None,
    ...                          files=3, path=f"{folder}/table.csv")
    ...     paths = sorted(Path(folder).glob("*.csv"))
    ...     cf.synthesis.combine_synthetic(paths).params.index.tolist()
    ['Intercept', 'x']
    """
    if len(paths) < 2:
        raise PlanError(
            "combine takes at least two files of one release",
            'make them with files=5, or write cf.synthesis.refit("table.parquet")',
        )
    found = [load(Path(path)) for path in paths]
    first = found[0].release
    if any(one.release.sha256 != first.sha256 for one in found):
        raise PlanError("the files belong to different releases", "combine those that one call of cf.synthesize wrote")
    numbers = [one.facts.get("file") for one in found]
    if len(set(numbers)) < len(numbers):
        raise PlanError("a file was given twice", "give each file of the release once")
    method = _regression(first)
    result = method.infer(first, _question(first, method.formula, formula))
    if not all(one.facts.get("drawn_line") for one in found):
        raise NoResult(
            "the files were made on one line, because the release gives no valid covariance or only one file was asked for",
            'write cf.synthesis.refit("table.parquet")',
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
    """The mean over the files of the variances that least squares states on the rows; they are too small for any other use."""
    total = np.zeros(len(design.names))
    for one, solution in zip(found, each, strict=True):
        matrix = design.matrix(one.frame)
        rest = design.response_of(one.frame) - matrix @ solution
        s2 = float(rest @ rest) / max(len(matrix) - matrix.shape[1], 1)
        total += s2 * np.diag(np.linalg.pinv(matrix.T @ matrix))
    return total / len(found)
