"""Table 1: all columns of a study, described by group."""
