"""Formulas and conditions over a schema: terms, expressions, their public bounds, columns for prediction."""
