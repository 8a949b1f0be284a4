"""Synthetic data from a release: rows, and the release with them for intervals."""

from confide.ask.synthesis import (
    combine_synthetic as combine_synthetic,
    refit as refit,
    treatment_effects as treatment_effects,
)
from confide.methods.synthesis.effects import TreatmentEffects as TreatmentEffects
from confide.methods.synthesis.files import SyntheticData as SyntheticData
from confide.methods.synthesis.table import SyntheticTable as SyntheticTable
