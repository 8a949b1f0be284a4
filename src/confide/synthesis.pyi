"""Synthetic tables from a release: rows for those who need rows, and the release beside them for those who need intervals."""

from confide.ask.synthesis import combine_synthetic as combine_synthetic, refit as refit
from confide.methods.synthesis.files import SyntheticData as SyntheticData
from confide.methods.synthesis.table import SyntheticTable as SyntheticTable
