"""Schemas: columns, bounds, levels, grid, provenance; formulas over them."""

from __future__ import annotations

from confide.schema.coded_frame import CodedFrame
from confide.schema.columns import Categorical, Column, Integer, Numeric
from confide.schema.dates import Date
from confide.schema.formulas.design import ModelMatrix
from confide.schema.formulas.terms import Term
from confide.schema.schema import Schema
from confide.schema.settings import Provenance, Typical
from confide.schema.survey import SurveyDesign
from confide.schema.unit import Clusters, Unit

__all__ = [
    "Categorical",
    "Clusters",
    "CodedFrame",
    "Column",
    "Date",
    "Integer",
    "ModelMatrix",
    "Numeric",
    "Provenance",
    "Schema",
    "SurveyDesign",
    "Term",
    "Typical",
    "Unit",
]
