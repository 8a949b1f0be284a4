"""The executable contract that any method can be put through, and what it practises on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide._helpers import names

if TYPE_CHECKING:
    from confide.testing.checks import ContractBroken
    from confide.testing.contract import Contract, check_method
    from confide.testing.test_data import ZeroNoise, codes_of
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "Contract": "confide.testing.contract",
            "ContractBroken": "confide.testing.checks",
            "ZeroNoise": "confide.testing.test_data",
            "check_method": "confide.testing.contract",
            "codes_of": "confide.testing.test_data",
        },
    )

__all__ = ["Contract", "ContractBroken", "ZeroNoise", "check_method", "codes_of"]
