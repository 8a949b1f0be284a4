"""The default line: the population's least-squares line from score sums."""
