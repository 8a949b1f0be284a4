"""Tables: counts, shares, means, totals, ratios, persons, Table 1."""
