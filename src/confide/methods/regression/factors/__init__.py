"""Lines of factors alone, from exact class sums."""
