"""What released moments say of a line: its covariance, what is hidden by noise, what is left out, and why."""
