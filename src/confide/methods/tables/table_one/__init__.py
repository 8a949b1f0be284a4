"""Table One: all columns of a study, described by group."""
