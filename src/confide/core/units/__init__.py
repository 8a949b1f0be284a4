"""Units: whose records a release protects, weights of rows, subgroups, contributions of a person."""
