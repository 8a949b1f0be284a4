# Prints, as JSON, what the package reads in each file: doubles in hexadecimal, so that nothing is rounded on the way.
files <- commandArgs(trailingOnly = TRUE)
library(confide)

hex <- function(values) ifelse(is.na(values), "nan", sprintf("%a", as.numeric(values)))
asked <- function(call) tryCatch(call, error = function(e) paste("error:", conditionMessage(e)))
rows <- function(matrix) if (is.character(matrix)) matrix else lapply(seq_len(nrow(matrix)), function(k) hex(unname(matrix[k, ])))

read <- function(path) {
  x <- read_release(path)
  tidied <- if (requireNamespace("generics", quietly = TRUE)) generics::tidy(x) else tidy_release(x)
  list(
    sha256 = x$sha256, verified = x$verified, status = x$status, guarantee = x$guarantee,
    terms = I(names(coef(x))), coef = I(unname(hex(coef(x)))), vcov = asked(rows(vcov(x))), stored = rows(confint(x)),
    ninety = asked(rows(confint(x, level = 0.9))), nobs = hex(nobs(x)), residuals = asked(residuals(x)),
    tidy = lapply(tidied[vapply(tidied, is.numeric, TRUE)], function(one) I(hex(one))),
    glance = glance_release(x)$release, printed = length(capture.output(print(summary(x)), print(x))),
    noisy = lapply(noisy_statistics(x), function(one) I(as.vector(hex(one$values))))
  )
}

cat(jsonlite::toJSON(lapply(files, read), auto_unbox = TRUE, null = "null"))
