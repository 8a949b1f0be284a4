"""What the methods of efficient propose-test-release share: a test that hides how safe the data are, then the release, or no reply."""

from __future__ import annotations

from typing import ClassVar

from confide.errors import PlanError
from confide.guarantees.validation import is_finite
from confide.protocol import Method

__all__ = ["Replying"]


class Replying(Method):
    """Base of methods that reply where their test passes. beta: the chance of no reply at the safety that is planned on."""

    beta: float

    source: ClassVar[str] = (
        "efficient propose-test-release (Shen, Tong, Wang 2026), corrected constants, exact Gaussian accounting"
    )
    relations: ClassVar[tuple[str, ...]] = ("substitute",)

    def _check_beta(self) -> None:
        if not (is_finite(self.beta) and 1e-12 <= self.beta < 1):
            raise PlanError(f"beta must be a number from 1e-12 to 1, got {self.beta!r}; 0.001 is the default")
