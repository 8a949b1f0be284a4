"""Logistic regression by noise on a penalized loss: on its objective, on its minimiser, or after a test of its curvature."""
