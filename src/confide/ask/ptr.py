"""`cf.ptr.safe_release`, `generalized_release` and `select_features`: propose-test-release in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from confide import engine
from confide._arrays import Array
from confide.ask.one_call import LEFT_OUT, checked_ledger
from confide.core import Noise, Source
from confide.errors import PlanError
from confide.guarantees import ApproxDP, Guarantee
from confide.ledger import Ledger
from confide.methods.ptr.feature_votes import MOVES, FeatureVotes, SelectedFeatures
from confide.methods.ptr.generalized_release import GeneralizedRelease
from confide.methods.ptr.safe_release import SafeRelease
from confide.methods.ptr.safety import SafetyBound, bound_name, checked_bound
from confide.results import Estimates
from confide.schema import Categorical
from confide.schema.formulas.names import column_named, sides


def safe_release(
    bound: SafetyBound,
    data: Source,
    *,
    privacy: Guarantee,
    ledger: Ledger | None = LEFT_OUT,
    mode: str = "gdp",
    gamma_plan: float | None = None,
    beta: float = 1e-3,
    columns: tuple[str, ...] | None = None,
    n: int | None = None,
    report: Any = None,
    noise: Noise | None = None,
) -> Estimates:
    """Release an estimate behind a safety bound, by propose-test-release.

    Plans, charges, releases and infers `SafeRelease` in one call. The release
    itself is not kept; use `confide.release` when you need the file.

    Parameters
    ----------
    bound : SafetyBound
        Safety bound of the estimator.
    data : Source
        Records behind a schema, from `confide.read`.
    privacy : GDP or ApproxDP
        Cost of the release, with delta above 0. Required.
    ledger : Ledger or None
        Ledger to charge. None releases without accounting. Required.
    mode : {"gdp", "exact", "adaptive"}, default "gdp"
        "gdp" answers with Gaussian noise, "exact" with the best probabilities for
        one (epsilon, delta). "adaptive" is for a `CertifiedBound`, and releases a
        noisy level.
    gamma_plan : float, optional
        Safety that is planned on, from public facts. Required, except for
        "adaptive".
    beta : float, default 0.001
        Probability of no answer at the safety that is planned on.
    columns : tuple of str, optional
        Columns that the bound gets, in this order. By default all of the schema.
    n : int, optional
        Public number of records, where the bound does not have it.
    report : BoundReport, optional
        What `confide.audit.falsify_safety_bound` found. It must not have broken
        the bound, and the guarantee then states how many pairs were tried.
    noise : Noise, optional
        Source of noise. Only simulations pass ``SimulatedNoise(seed)``, which
        protects no one.

    Returns
    -------
    Estimates
        The estimates, or the status "declined" without estimates.

    Raises
    ------
    PlanError
        The report does not fit the bound, or a parameter is invalid. Nothing was
        charged.
    BudgetExceeded
        The cost does not fit the ledger. Nothing was drawn or charged.

    See Also
    --------
    SafeRelease : The method behind this call, with its guarantee.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1, on_missing="midpoint")})
    >>> data = cf.read(schema.sample(1_000, seed=1), schema)
    >>> median = cf.ptr.OrderStatistic(500, 0.0, 1.0, alpha=0.05)
    >>> cf.ptr.safe_release(median, data, privacy=cf.ApproxDP(1.0, 1e-6),
    ...                     ledger=None, gamma_plan=40, n=1_000).names
    ('x_(500)',)
    """
    checked_ledger(ledger)
    tried = 0
    if report is not None:
        said = getattr(report, "verdict", "nothing")
        if said != "holds":
            raise PlanError(
                f"the report on the bound says {said!r}: a bound that is broken, or was never tried on "
                "safe data, releases nothing",
                "print(report) shows the neighbors",
            )
        if report.name != bound_name(bound):
            raise PlanError(
                f"the report is on {report.name!r}, the bound is {bound_name(bound)!r}",
                "attack the bound that is released with",
            )
        if mode != "adaptive" and report.bound != float(checked_bound(bound).alpha):
            raise PlanError(
                f"the report is on alpha = {report.bound:g}, the bound has {float(bound.alpha):g}",
                "attack the bound that is released with",
            )
        tried = int(report.tried)
    method = SafeRelease(bound, columns, mode, gamma_plan, beta, tried)
    return method.infer(engine.release(method, data, privacy, ledger=ledger, noise=noise, n=n))


# Of a search for neighbors that break what a mechanism asserts, where no number of records is given.
_ATTACKED = 200


def generalized_release(
    mechanism: Callable[[Array, Noise], Any],
    data: Source,
    *,
    loss: Callable[[float], float],
    statistic: Callable[[Array], float],
    sensitivity: float,
    privacy: Guarantee,
    ledger: Ledger | None = LEFT_OUT,
    dim: int = 1,
    grid: float = 1.0,
    test_share: float = 0.25,
    columns: tuple[str, ...] | None = None,
    names: tuple[str, ...] | None = None,
    n: int | None = None,
    report: Any = None,
    noise: Noise | None = None,
) -> Estimates:
    """Run a mechanism whose privacy loss depends on the data, after a test of it.

    Attacks what is asserted of the functions on tables drawn from the schema,
    plans, charges, releases and infers `GeneralizedRelease` in one call.

    Parameters
    ----------
    mechanism : callable
        ``mechanism(table, noise)`` gives `dim` whole numbers, in steps of
        `grid`. The table is an array (n, columns) in the columns' units, a level
        as its position. `noise` draws whole numbers: ``grid_gaussian(variance,
        size)``, ``discrete_laplace(scale, size)``, ``bernoulli(p, size)``. Draw
        all random numbers from it: others are refused.
    data : Source
        Records behind a schema, from `confide.read`.
    loss : callable
        ``loss(value)`` is the epsilon of the mechanism, toward every neighbor and
        at the delta of the request or a smaller one, on tables whose statistic is
        `value`. It must not rise with it.
    statistic : callable
        ``statistic(table)`` is a number, larger where data are safer.
    sensitivity : float
        Largest change of the statistic when one record changes.
    privacy : ApproxDP
        Cost of the release. Required.
    ledger : Ledger or None
        Ledger to charge. None releases without accounting. Required.
    dim : int, default 1
        How many numbers the mechanism gives.
    grid : float, default 1.0
        Unit of the mechanism's whole numbers, a power of two.
    test_share : float, default 0.25
        Share of epsilon for the test.
    columns : tuple of str, optional
        Columns of the table, in this order. By default all of the schema.
    names : tuple of str, optional
        Names of the numbers.
    n : int, optional
        Public number of records.
    report : LossReport, optional
        What `confide.audit.falsify_loss` found. By default the attack is made
        here, from the schema alone.
    noise : Noise, optional
        Source of noise. Only simulations pass ``SimulatedNoise(seed)``, which
        protects no one.

    Returns
    -------
    Estimates
        The mechanism's numbers, or the status "declined" without numbers.

    Raises
    ------
    PlanError
        An attack broke what is asserted, or a parameter is invalid. Nothing was
        charged.
    BudgetExceeded
        The cost does not fit the ledger. Nothing was drawn or charged.

    See Also
    --------
    GeneralizedRelease : The method behind this call, with its guarantee.

    Notes
    -----
    Guarantee: ApproxDP(epsilon, delta) under substitution, if the assertions are
    true: the statistic moves by at most `sensitivity`, and the mechanism has the
    stated loss. Functions cannot be proved right. So the guarantee lists both,
    and on how many pairs of neighbors they were attacked.

    References
    ----------
    Redberg, Zhu, Wang 2023, Theorem 4.3, corrected.

    Examples
    --------
    >>> import confide as cf, numpy as np
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1, on_missing="midpoint")})
    >>> data = cf.read(schema.sample(1_000, seed=1), schema)
    >>> def high_mean(table, noise):
    ...     high = table[table[:, 0] > 0.5, 0]
    ...     return np.rint(high.mean() * 2**20) + noise.discrete_laplace(2**20 // 20, 1)
    >>> def count(table):
    ...     return float((table[:, 0] > 0.5).sum())
    >>> found = cf.ptr.generalized_release(
    ...     high_mean, data, loss=lambda k: 20 * (1 / k + 2**-19) if k >= 1 else np.inf, statistic=count, sensitivity=1.0,
    ...     grid=2**-20, privacy=cf.ApproxDP(1.0, 1e-6), ledger=None, n=1_000, noise=cf.noise.SimulatedNoise(1))
    >>> found.status, bool(0.5 < found.params.iloc[0] < 1.0)
    ('valid', True)
    """
    checked_ledger(ledger)
    settings: dict[str, Any] = {"dim": dim, "grid": grid, "test_share": test_share, "columns": columns, "names": names}
    method = GeneralizedRelease(mechanism, loss, statistic, sensitivity, **settings)
    if report is not None:
        _check_report(report, method, privacy)
    # what public facts refuse is refused before the attack, which takes seconds
    engine.plan(method, data.schema, privacy, n=n)
    assert isinstance(privacy, ApproxDP)
    if report is None:
        report = attacked(method, data.schema, privacy, n)
    if getattr(report, "verdict", "nothing") == "violated":
        raise PlanError(
            f"an attack on {_named(mechanism)} broke {'; and '.join(report.broken)}. Nothing was charged",
            "correct it; the report of confide.audit.falsify_loss(mechanism, loss, statistic, sensitivity, schema, n=400, epsilon="
            f"{float(method.budget(privacy.epsilon)[1]):g}) has the pair of tables",
        )
    tried = int(report.tried) if report.verdict == "holds" else 0
    method = GeneralizedRelease(mechanism, loss, statistic, sensitivity, **settings, tried=tried)
    return method.infer(engine.release(method, data, privacy, ledger=ledger, noise=noise, n=n))


def _check_report(report: Any, method: GeneralizedRelease, privacy: Any) -> None:
    """`PlanError` for a report on other functions or budgets: the guarantee states how many pairs it tried."""
    from confide.audit.searches.loss import LossReport, attacked_on

    if not isinstance(report, LossReport):
        raise PlanError(f"report must be a LossReport, got {type(report).__name__}", "leave it out")
    if not isinstance(privacy, ApproxDP):
        return  # planning says what is wrong
    most = float(method.budget(privacy.epsilon)[1])
    own = attacked_on(method.mechanism, method.loss, method.statistic, method.sensitivity, most)
    if report.of[:-1] != own[:-1] or not report.of[-1] >= most or report.delta > privacy.delta:
        said = "{} with {} of {}, sensitivity {:g}, loss up to {:.4g}, delta {:g}"
        raise PlanError(
            f"the report is on {said.format(*report.of, report.delta)}; asked is {said.format(*own, privacy.delta)}",
            "leave it out, and the attack is made here",
        )


def attacked(method: GeneralizedRelease, schema: Any, privacy: ApproxDP, n: int | None) -> Any:
    """The report of an attack on what is asserted of a method's functions, on tables within the schema's bounds."""
    from confide.audit.searches.loss import falsify_loss
    from confide.audit.searches.neighbors import Domain

    whole = Domain.of(schema, hostile=False)
    assert whole.names is not None
    axes = [whole.axes[whole.names.index(name)] for name in method.about(schema).columns]
    return falsify_loss(
        method.mechanism,
        method.loss,
        method.statistic,
        method.sensitivity,
        Domain(tuple(axes), hostile=False),
        n=n or _ATTACKED,
        epsilon=float(method.budget(privacy.epsilon)[1]),
        delta=privacy.delta,
    )


def _named(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def select_features(
    formula: str,
    data: Source,
    k: int,
    *,
    privacy: Guarantee,
    ledger: Ledger | None = LEFT_OUT,
    blocks: int = 100,
    n: int | None = None,
    noise: Noise | None = None,
) -> SelectedFeatures:
    """Choose the k features of a linear model that blocks of the records agree on.

    Each of the blocks takes k features by a greedy forward search. Blocks of
    fewer than k + 2 records, or whose response is constant, take none. The k with
    most votes are released where a test finds that no record can change them;
    otherwise the answer is "declined". A regression of the chosen formula is then
    a second release, with its own cost. Its intervals do not count the choice:
    take other records for it, or a part that the choice did not see.

    Parameters
    ----------
    formula : str
        Formula ``"y ~ a + b + c"`` of numeric columns, without transformations.
        A response of two values is one of numbers 0 and 1.
    data : Source
        Records behind a schema, from `confide.read`.
    k : int
        How many features to choose.
    privacy : ApproxDP
        Cost of the choice. Required.
    ledger : Ledger or None
        Ledger to charge. None releases without accounting. Required.
    blocks : int, default 100
        Number of blocks. More blocks are stabler, and smaller.
    n : int, optional
        Public number of records.
    noise : Noise, optional
        Source of noise. Only simulations pass ``SimulatedNoise(seed)``, which
        protects no one.

    Returns
    -------
    SelectedFeatures
        The names, a `formula` of them, the status and the guarantee. Where it
        declined it has a `reason`, and `formula` raises `NoResult`.

    Raises
    ------
    PlanError
        A column or a parameter is invalid. Nothing was charged.
    BudgetExceeded
        The cost does not fit the ledger. Nothing was drawn or charged.

    See Also
    --------
    generalized_release : The release behind this call.

    Notes
    -----
    Guarantee: ApproxDP(epsilon, delta) under substitution with a
    public number of records. One record changes the votes of one block, so that the
    gap between the last chosen feature and the next one moves by at most 2. Where it
    is above 2 the choice is the same for every neighbor, and its loss is 0. `confide.methods.ptr.feature_votes` has
    the proof.

    References
    ----------
    Redberg, Zhu, Wang 2023, C.4; Kifer, Smith, Thakurta 2012.

    Examples
    --------
    >>> import confide as cf, numpy as np
    >>> g = np.random.default_rng(1)
    >>> x = g.random((6_000, 4))
    >>> schema = cf.Schema({name: cf.Numeric(-3, 6, on_missing="midpoint") for name in "abcdy"})
    >>> records = dict(zip("abcd", x.T)) | {"y": 2 * x[:, 0] - 2 * x[:, 2] + 0.5 * g.normal(size=6_000)}
    >>> found = cf.ptr.select_features(
    ...     "y ~ a + b + c + d", cf.read(records, schema), 2, privacy=cf.ApproxDP(1.0, 1e-6), ledger=None,
    ...     noise=cf.noise.SimulatedNoise(1))
    >>> found.formula
    'y ~ a + c'
    """
    checked_ledger(ledger)
    names = _plain(formula, data.schema)
    votes = FeatureVotes(len(names) - 1, k, blocks)
    method = GeneralizedRelease(
        votes.mechanism,
        votes.loss,
        votes.statistic,
        MOVES,
        dim=k,
        test_share=1.0,
        columns=names,
        names=tuple(f"feature {place + 1}" for place in range(k)),
    )
    if isinstance(privacy, ApproxDP) and blocks <= (gap := MOVES + method.taken_off(privacy.epsilon, privacy.delta)):
        raise PlanError(
            f"the votes of {blocks} blocks are never {gap:.4g} apart, which the test takes at this budget: it would always decline",
            f"write blocks={int(2 * gap)}, or ask for a larger epsilon",
        )
    result = method.infer(engine.release(method, data, privacy, ledger=ledger, noise=noise, n=n))
    chosen = [] if result.status != "valid" else [int(place) for place in result.estimates]
    return SelectedFeatures(tuple(names[place] for place in chosen), names[-1], result.status, result)


def _plain(formula: str, schema: Any) -> tuple[str, ...]:
    """The features of a formula in its order, then the response; `PlanError` for anything but a sum of numeric columns."""
    both = sides(formula) if isinstance(formula, str) else []
    right = both[1].split("+") if len(both) == 2 else []
    names = tuple(column_named(part.strip(), schema.names) for part in [*right, *both[:1]])
    wrong = [name for name in names if name not in schema.names or isinstance(schema[name], Categorical)]
    if len(names) < 3 or wrong or len(set(names)) < len(names):
        what = f"{wrong[0]!r} is not a numeric column" if wrong else "at least two different features are needed"
        raise PlanError(
            f"select_features takes a sum of numeric columns, and in {formula!r} {what}", "write 'y ~ a + b + c'"
        )
    return names
