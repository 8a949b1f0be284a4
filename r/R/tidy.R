# The data frames of broom.

tidy_release <- function(x, conf.int = TRUE, conf.level = stored_level(x), ...) {
  found <- data.frame(term = terms_of(x), estimate = unname(estimates(x)), stringsAsFactors = FALSE)
  kinds <- c(std.error = "std_err", statistic = "statistic", p.value = "p", privacy.share = "share")
  for (name in names(kinds)) found[[name]] <- of_kind(x, kinds[[name]])
  # a rank test of several groups has its statistic and p-value outside its table
  for (name in c("statistic", "p_value")) {
    beside <- numbers(as.list(x$result[[name]]))
    own <- sub("_", ".", name)
    if (is.null(found[[own]]) && length(beside) == nrow(found)) found[[own]] <- beside
  }
  if (isTRUE(conf.int) && !is.null(of_kind(x, "interval"))) {
    limits <- confint(x, level = conf.level)
    found$conf.low <- unname(limits[, 1L])
    found$conf.high <- unname(limits[, 2L])
  }
  found
}

glance_release <- function(x, ...) {
  result <- answered(x)
  squared <- if (is.null(result$rsquared)) NA_real_ else as.numeric(result$rsquared)
  data.frame(
    method = paste(x$method$name, x$method$version), status = x$status, nobs = nobs(x), r.squared = squared,
    guarantee = x$guarantee, relation = x$relation, unit = x$unit, simulated = x$simulated, release = x$sha256,
    stringsAsFactors = FALSE
  )
}

tidy.confide_release <- function(x, conf.int = TRUE, conf.level = stored_level(x), ...) {
  tidy_release(x, conf.int = conf.int, conf.level = conf.level, ...)
}

glance.confide_release <- function(x, ...) glance_release(x, ...)
