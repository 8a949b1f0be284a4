"""A line by propose-test-release with a certified bound."""
