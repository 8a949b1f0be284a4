"""Safety bounds of particular estimators, one a file, and the numbers behind them (`formulas`). Each is proved in its file's docstring."""

#: Class -> module, for plans that name a bound.
BOUNDS = {
    "BallLikelihood": "likelihood",
    "ClassMeans": "class_means",
    "KernelRegression": "kernel",
    "LeadingEigenvector": "eigenvector",
    "LeastSquares": "least_squares",
    "OrderStatistic": "order_statistic",
}
