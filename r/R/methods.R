# R's own verbs for models.

coef.confide_release <- function(object, ...) estimates(object)

vcov.confide_release <- function(object, ...) {
  rows <- answered(object)$covariance
  if (is.null(rows)) no_covariance(object)
  named <- terms_of(object)
  matrix(unlist(lapply(rows, numbers)), length(named), byrow = TRUE, dimnames = list(named, named))
}

nobs.confide_release <- function(object, ...) {
  found <- answered(object)$nobs_noisy
  if (is.null(found)) NA_real_ else as.numeric(found)
}

confint.confide_release <- function(object, parm, level = stored_level(object), ...) {
  limits <- if (abs(level - stored_level(object)) < 1e-12) stored_limits(object) else limits_at(object, level)
  tails <- c((1 - level) / 2, 1 - (1 - level) / 2)
  dimnames(limits) <- list(terms_of(object), paste(format(100 * tails, trim = TRUE, digits = 3), "%"))
  if (missing(parm)) limits else limits[parm, , drop = FALSE]
}

stored_limits <- function(x) {
  low <- of_kind(x, "interval", 1L)
  if (is.null(low)) stop("this result states no intervals", call. = FALSE)
  cbind(low, of_kind(x, "interval", 2L))
}

# Estimates with a covariance have intervals at any level: Student's t with each one's degrees of freedom, and a bound on the bias.
limits_at <- function(x, level) {
  result <- answered(x)
  if (is.null(result$covariance) || is.null(result$distribution) || result$status == "imprecise") {
    stop(sprintf("these intervals are at level %g alone; for another write the file with it: ", stored_level(x)),
         "confide infer release.json --alpha ALPHA -o FILE", call. = FALSE)
  }
  half <- quantiles(x, level) * sqrt(diag(vcov(x))) + bias_of(x)
  cbind(estimates(x) - half, estimates(x) + half)
}

quantiles <- function(x, level) {
  df <- degrees(x)
  tail <- (1 - level) / 2
  ifelse(is.infinite(df), qnorm(tail, lower.tail = FALSE), qt(tail, df, lower.tail = FALSE))
}

# JSON has no infinity: it stands as null, and means the normal distribution.
degrees <- function(x) {
  found <- answered(x)$df
  if (is.null(found)) return(rep(Inf, length(estimates(x))))
  df <- rep_len(numbers(as.list(found)), length(estimates(x)))
  ifelse(is.na(df) & !is.na(estimates(x)), Inf, df)
}

bias_of <- function(x) {
  bias <- answered(x)$bias
  if (is.null(bias)) 0 else numbers(bias)
}

residuals.confide_release <- function(object, ...) no_records("residuals")

fitted.confide_release <- function(object, ...) no_records("fitted values")

no_records <- function(what) {
  stop(what, " are one number for each record, and the records are private: a release holds noisy statistics of all ",
       "records together, not of one", call. = FALSE)
}

# A publication is several releases: R's defaults would answer NULL, or speak of degrees of freedom.
coef.confide_publication <- function(object, ...) one_analysis(object)
vcov.confide_publication <- function(object, ...) one_analysis(object)
confint.confide_publication <- function(object, parm, level = 0.95, ...) one_analysis(object)
nobs.confide_publication <- function(object, ...) one_analysis(object)
residuals.confide_publication <- function(object, ...) no_records("residuals")
fitted.confide_publication <- function(object, ...) no_records("fitted values")

one_analysis <- function(x) {
  stop("this is a publication of several analyses; take one: x[[\"", names(x)[[1L]], "\"]]", call. = FALSE)
}
