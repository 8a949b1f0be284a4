"""Lines on the real sets that CONFIDE_DATA names, as cases of the truth table: at most six terms, bounds as the manifest states them.

Which columns stand in a formula was chosen by their meaning. Where the folder is not given the sets are skipped and the bench says so.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from confide.errors import SourceError
from confide.schema import Schema
from confide_lab import datasets

__all__ = ["RECORDS", "frame_of", "missing"]

#: name of the case -> (name of the set, formula)
RECORDS: Mapping[str, tuple[str, str]] = {
    "abalone": ("D4", "rings ~ length + diameter + height"),
    "adult": ("adult", "hours_per_week ~ age + education_num + sex"),
    "air": ("D7", "co_gt ~ c6h6_gt + t + rh"),
    "airfoil": ("airfoil", "sound_pressure_level ~ frequency + angle_of_attack + chord_length"),
    "appliances": ("D8", "appliances ~ lights + t1 + rh_1"),
    "auction": ("D3", "property_price ~ process_b1_capacity + property_product + verification_time"),
    "bike": ("bike", "cnt ~ temp + hum + windspeed"),
    "california": ("california", "median_house_value ~ median_income + housing_median_age"),
    "casp": ("casp", "rmsd ~ f1 + f3"),
    "concrete": ("concrete", "compressive_strength ~ cement + water + age"),
    "elevators": ("elevators", "goal ~ climb_rate + p + q"),
    "energy": ("energy", "heating_load ~ relative_compactness + glazing_area"),
    "kin8nm": ("kin8nm", "y ~ theta1 + theta3 + theta5"),
    "liver": ("D2", "selector ~ mcv + gammagt + drinks"),
    "parkinsons": ("D5", "total_updrs ~ age + sex + test_time"),
    "superconductivity": ("D9", "critical_temp ~ number_of_elements + mean_atomic_mass"),
    "wine": ("D6", "quality ~ alcohol + volatile_acidity + residual_sugar"),
    "yacht": ("yacht", "residuary_resistance ~ froude_number + prismatic_coefficient"),
}


def missing(case: str) -> str | None:
    """Why a case cannot be had here, None when it can."""
    return datasets.available(RECORDS[case][0])


def frame_of(case: str) -> tuple[pd.DataFrame, Schema]:
    """The records of a case and their schema; `SourceError` where they are not here."""
    if (lost := missing(case)) is not None:
        raise SourceError(lost)
    found = datasets.table(RECORDS[case][0])
    return found.frame, found.schema
