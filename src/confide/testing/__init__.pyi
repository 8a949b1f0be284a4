"""The executable contract that any method can be put through, and what it practises on."""

from confide.testing.checks import ContractBroken as ContractBroken
from confide.testing.contract import Contract as Contract, check_method as check_method
from confide.testing.test_data import ZeroNoise as ZeroNoise, codes_of as codes_of
