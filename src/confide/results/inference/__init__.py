"""Tests and contrasts of estimates, and the distributions that they are referred to."""
