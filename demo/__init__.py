"""The demonstration on the 1974 Redbook survey."""
