"""Tables by cell: counts, shares, totals and means over crossings, with intervals; tests as questions to them."""
