"""Sums behind the covariance of clusters, persons and primary sampling units."""
