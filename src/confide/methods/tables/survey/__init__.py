"""Tables of a survey: weights, strata and PSUs in estimates and intervals."""
