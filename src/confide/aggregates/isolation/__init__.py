"""Computations that are no sums: the coded records themselves, disjoint blocks of them, a process for each."""
