"""Lines and generalised lines: what the family shares stands here, each method's own rounds in a folder."""
