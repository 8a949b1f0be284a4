"""Lines of a mean by maximum likelihood: logistic, probit, Poisson."""
