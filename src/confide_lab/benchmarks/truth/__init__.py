"""What intervals hold, against the truth: cases, runs, the rules that judge, and the page of docs/coverage.md."""
