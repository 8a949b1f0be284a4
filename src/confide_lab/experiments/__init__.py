"""The experiments by name. Each is made when it is asked for; another package adds its own with `register`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from confide.errors import PlanError
from confide_lab.experiment import Experiment

__all__ = ["load", "names", "register"]

# name -> module and attribute; modules are imported when an experiment is asked for
_PLACES: dict[str, str | Callable[[], Experiment]] = {
    "binagg.comparison": "confide_lab.experiments.binagg_release:COMPARISON",
    "binagg.figure1": "confide_lab.experiments.binagg_simulated:FIGURE1",
    "binagg.figure2": "confide_lab.experiments.binagg_simulated:FIGURE2",
    "binagg.table1": "confide_lab.experiments.binagg_intervals:TABLE1",
    "binagg.table2": "confide_lab.experiments.binagg_tables:TABLE2",
    "binagg.table3": "confide_lab.experiments.binagg_synthetic:TABLE3",
    "binagg.table5": "confide_lab.experiments.binagg_release:TABLE5",
    "binagg.table6": "confide_lab.experiments.binagg_tuning:TABLE6",
    "binagg.table7": "confide_lab.experiments.binagg_tuning:TABLE7",
    "binagg.table8": "confide_lab.experiments.binagg_tuning:TABLE8",
    "eptr.class_intervals": "confide_lab.experiments.eptr_bayes:INTERVALS",
    "eptr.figure1": "confide_lab.experiments.eptr_bayes:FIGURE1",
    "eptr.figure2": "confide_lab.experiments.eptr_linear:FIGURE2",
    "eptr.figure3": "confide_lab.experiments.eptr_kernel:FIGURE3",
    "gptr.figure1": "confide_lab.experiments.gptr:FIGURE1",
    "gptr.logistic": "confide_lab.experiments.gptr_logistic:LOGISTIC",
    "gptr.search": "confide_lab.experiments.gptr_search:SEARCH",
    "gptr.intervals": "confide_lab.experiments.gptr:INTERVALS",
    "intervals.regions": "confide_lab.experiments.joint_regions:REGIONS",
    "models.comparison": "confide_lab.experiments.model_comparison:MODELS",
    "pate.figure2": "confide_lab.experiments.pate:FIGURE2",
    "pca.comparison": "confide_lab.experiments.pca:COMPARISON",
    "precise.calibration": "confide_lab.experiments.precise_calibration:CALIBRATION",
    "precise.coverage": "confide_lab.experiments.precise:COVERAGE",
    "precise.figure4": "confide_lab.experiments.precise_paper:FIGURE4",
    "precise.figure5": "confide_lab.experiments.precise_constants:FIGURE5",
    "precise.gdp": "confide_lab.experiments.precise:GDP",
    "precise.real": "confide_lab.experiments.precise_real:REAL",
    "precise.regression": "confide_lab.experiments.precise_line:REGRESSION",
    "precise.table2": "confide_lab.experiments.precise_constants:TABLE2",
    "precise.table3": "confide_lab.experiments.precise_paper:TABLE3",
    "precise.table4": "confide_lab.experiments.precise_table4:TABLE4",
    "ptr.features": "confide_lab.experiments.own_mechanisms:OWN",
    "ssp2.bootstrap": "confide_lab.experiments.ssp2_tables:BOOTSTRAP",
    "ssp2.cells": "confide_lab.experiments.ssp2_simulated:CELLS",
    "ssp2.fresh": "confide_lab.experiments.ssp2_simulated:FRESH_CELLS",
    "ssp2.tables": "confide_lab.experiments.ssp2_tables:TABLES",
    "survey.caps": "confide_lab.experiments.survey:CAPS",
    "survey.clusters": "confide_lab.experiments.survey:CLUSTERS",
    "survey.designs": "confide_lab.experiments.survey:DESIGNS",
    "survey.lines": "confide_lab.experiments.survey:LINES",
    "survey.logits": "confide_lab.experiments.survey:LOGITS",
    "survey.rare": "confide_lab.experiments.survey:RARE",
    "survey.real": "confide_lab.experiments.survey_real:REAL",
    "survey.uneven": "confide_lab.experiments.survey:UNEVEN",
    "synthetic.effects": "confide_lab.experiments.trial_effects:EFFECTS",
    "tables.coverage": "confide_lab.experiments.tables:COVERAGE",
    "tables.marginals": "confide_lab.experiments.tables:MARGINALS",
    "tables.tests": "confide_lab.experiments.tables:TESTS",
    "tables.distribution": "confide_lab.experiments.tables_distribution:DISTRIBUTION",
    "tables.ranks": "confide_lab.experiments.tables_distribution:RANKS",
    "voting.figure3": "confide_lab.experiments.voting:FIGURE3",
    "zil.coverage": "confide_lab.experiments.local_coverage:COVERAGE",
    "zil.figure1": "confide_lab.experiments.zil_curves:FIGURE1",
    "zil.figure2": "confide_lab.experiments.zil_functionals:FIGURE2",
    "zil.rivals": "confide_lab.experiments.local_rivals:RIVALS",
    "zil.table1": "confide_lab.experiments.zil_functionals:TABLE1",
    "zil.table2": "confide_lab.experiments.zil_regressions:TABLE2",
    "zil.table3": "confide_lab.experiments.zil_regressions:TABLE3",
    "zil.variance": "confide_lab.experiments.zil_variance:VARIANCE",
}


def names() -> tuple[str, ...]:
    """Every experiment, sorted.

    >>> "binagg.table1" in names()
    True
    """
    return tuple(sorted(_PLACES))


def load(name: str) -> Experiment:
    """The experiment of that name; `PlanError` when there is none."""
    if name not in _PLACES:
        raise PlanError(f"there is no experiment {name!r}; there are {', '.join(names())}")
    place = _PLACES[name]
    if callable(place):
        return place()
    module, _, attribute = place.partition(":")
    found: Experiment = getattr(import_module(module), attribute)
    return found


def register(name: str, make: Callable[[], Experiment]) -> None:
    """Add an experiment; its measure must be a function of a module when it is to run in several processes."""
    _PLACES[name] = make
