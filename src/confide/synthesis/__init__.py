"""Synthetic tables from a release: rows for those who need rows, and the release beside them for those who need intervals."""

from confide.synthesis.data import SyntheticData
from confide.synthesis.table import SyntheticTable

__all__ = ["SyntheticData", "SyntheticTable"]
