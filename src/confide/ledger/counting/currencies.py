"""Which currencies there are: by the kind of a budget, and by what a row of `budget` says."""

from __future__ import annotations

from confide.errors import PrivacyError
from confide.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from confide.ledger.counting.currency import Concentrated, Currency, Pure
from confide.ledger.counting.gaussian_ledger import Gaussian
from confide.ledger.counting.pair_ledger import Converted, Pair

__all__ = ["CURRENCIES", "currency_at", "currency_of"]

#: What a ledger is opened in, by the kind of its budget.
CURRENCIES: dict[str, Currency] = {currency.name: currency for currency in (Gaussian(), Concentrated(), Pure(), Pair())}
_ALL = {(currency.name, currency.state): currency for currency in (*CURRENCIES.values(), Converted())}


def currency_of(budget: Guarantee) -> Currency:
    """The currency of a ledger that is opened with this budget; `PrivacyError` for anything that is no guarantee.

    >>> currency_of(GDP(1.0)).name
    'GDP'
    """
    found = CURRENCIES.get(type(budget).__name__) if isinstance(budget, (GDP, ZCDP, PureDP, ApproxDP)) else None
    if found is None:
        raise PrivacyError(
            "a budget must be GDP(mu), GDP(mu, delta), ApproxDP(epsilon, delta), ZCDP(rho) or cf.PureDP(epsilon), got "
            f"{type(budget).__name__}; for instance GDP(2.0)"
        )
    return found


def currency_at(name: str, state: str) -> Currency:
    """The currency of a row of `budget`; `KeyError` for one that there is not."""
    return _ALL[name, state]
