"""Privacy losses on a public grid, composed by convolution, never below the truth."""
