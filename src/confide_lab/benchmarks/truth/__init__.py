"""What intervals hold, against the truth: cases, runs, the rules that judge, and the rows of evidence/coverage.csv."""
