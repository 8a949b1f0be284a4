"""What is public about the data: columns, bounds, levels, grid, provenance; formulas over them."""

from __future__ import annotations

from confide.schema.clusters import Clusters
from confide.schema.columns import Categorical, Column, Integer, Numeric, Provenance, Typical
from confide.schema.formulas.design import Design
from confide.schema.formulas.term import Term
from confide.schema.practice import Practice
from confide.schema.schema import Schema
from confide.schema.survey import SurveyDesign
from confide.schema.unit import Unit

__all__ = [
    "Categorical",
    "Clusters",
    "Column",
    "Design",
    "Integer",
    "Numeric",
    "Practice",
    "Provenance",
    "Schema",
    "SurveyDesign",
    "Term",
    "Typical",
    "Unit",
]
