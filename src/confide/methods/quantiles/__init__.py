"""Quantiles of a numeric column, by group, and its distribution function; Gaussian or geometric noise, by the guarantee asked for."""
