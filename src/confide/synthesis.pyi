"""Synthetic data from a release: rows, and the release with them for intervals."""

from confide.ask.synthesis import combine_synthetic as combine_synthetic, refit as refit
from confide.methods.synthesis.files import SyntheticData as SyntheticData
from confide.methods.synthesis.table import SyntheticTable as SyntheticTable
