"""The line from second moments: SSP."""
