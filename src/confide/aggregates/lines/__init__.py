"""Moments behind lines: rows of features and responses as exact integers, each map with its proved reach."""
