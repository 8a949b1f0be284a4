"""The executable contract that any method can be put through, and what it practises on."""

from confide.testing.contract import Contract, ContractBroken, check_method
from confide.testing.practice import ZeroNoise, codes_of

__all__ = ["Contract", "ContractBroken", "ZeroNoise", "check_method", "codes_of"]
