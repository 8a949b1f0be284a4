"""Numbers of records up to public edges: cumulative counts, trees of counts, bins that lie where the records are."""
