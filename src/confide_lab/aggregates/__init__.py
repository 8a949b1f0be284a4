"""Record maps and exact statistics of the comparison methods, with their sensitivities."""
