"""One quantile by the exponential mechanism on ranks."""
