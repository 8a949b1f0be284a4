"""The Huber-type line: residuals limited, by name only."""
