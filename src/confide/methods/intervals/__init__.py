"""One parameter at a time: quantiles."""
