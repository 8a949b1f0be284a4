"""Logistic and Poisson regression by Fisher scoring."""
