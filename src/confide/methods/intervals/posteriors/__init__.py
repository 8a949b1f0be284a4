"""What noisy sums say of a parameter: laws of noise, moments after clipping, posteriors, and the maps that are summed."""
