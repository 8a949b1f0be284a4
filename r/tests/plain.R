# Plain checks, without any package for tests: each line stops where it does not hold.
library(confide)

refused <- function(call, words) {
  said <- tryCatch({ call; "no error" }, error = conditionMessage)
  stopifnot(grepl(words, said, fixed = TRUE))
}

line <- read_release(system.file("extdata", "line.json", package = "confide"))
means <- read_release(system.file("extdata", "means.json", package = "confide"))

stopifnot(
  identical(line$status, "valid"), line$simulated, identical(line$guarantee, "GDP(mu=2, add-remove)"),
  identical(names(coef(line))[1:2], c("Intercept", "age")),
  identical(dim(vcov(line)), c(4L, 4L)), isSymmetric(vcov(line)),
  all.equal(unname(sqrt(diag(vcov(line)))), tidy_release(line)$std.error, tolerance = 1e-14),
  all.equal(confint(line), confide:::limits_at(line, 0.95), tolerance = 1e-12, check.attributes = FALSE),
  all(confint(line, level = 0.5)[, 1] > confint(line)[, 1]),
  identical(rownames(confint(line, "age")), "age"),
  nobs(line) > 0, is.na(nobs(means)),
  nrow(as.data.frame(means)) == 4L, length(coef(means)) == 4L,
  nrow(glance_release(line)) == 1L, glance_release(line)$nobs == nobs(line)
)
refused(residuals(line), "the records are private")
refused(fitted(line), "the records are private")
refused(vcov(means), "no covariance between rows")
refused(confint(means, level = 0.9), "level 0.95 alone")
refused(read_release(system.file("DESCRIPTION", package = "confide")), "not JSON")

# a release as the gate wrote it, without results
bare <- line
bare$result <- NULL
refused(coef(bare), "confide infer release.json -o FILE")
stopifnot(length(noisy_statistics(bare)) == length(bare$body$statistics))

# text stands for integers that a double cannot hold, and the last index of the file runs fastest
stopifnot(identical(confide:::shaped(1:6, c(2L, 3L)), matrix(1:6, 2, byrow = TRUE)), confide:::fraction("3/4") == 0.75)

if (requireNamespace("generics", quietly = TRUE)) {
  stopifnot(identical(generics::tidy(line), tidy_release(line)), identical(generics::glance(means), glance_release(means)))
}
if (requireNamespace("digest", quietly = TRUE)) stopifnot(isTRUE(line$verified))
print(summary(line))
print(means)
