# What is shown.

print.confide_release <- function(x, ...) {
  lines(x)
  if (is.null(x$result)) {
    cat("Noisy statistics:", paste(names(x$body$statistics), collapse = ", "), "\n")
    cat("No estimates in this file; confide infer release.json -o FILE writes them into it.\n")
  } else if (has_estimates(x)) {
    print(estimates(x), digits = 4)
  } else {
    print(as.data.frame(x))
  }
  invisible(x)
}

print.confide_publication <- function(x, ...) {
  cat("A publication of", length(x), if (length(x) == 1L) "analysis;" else "analyses;", "each is a release: x[[\"name\"]]\n")
  for (name in names(x)) cat(sprintf("%s (%s): %s\n", name, x[[name]]$status, x[[name]]$target))
  invisible(x)
}

summary.confide_release <- function(object, ...) {
  answered(object)
  structure(list(release = object, table = if (has_estimates(object)) tidy_release(object) else as.data.frame(object)),
            class = "summary.confide_release")
}

print.summary.confide_release <- function(x, digits = 4L, ...) {
  own <- x$release
  lines(own)
  shown <- x$table
  number <- vapply(shown, is.numeric, TRUE)
  shown[number] <- lapply(shown[number], function(one) trimws(formatC(one, digits = digits, format = "g")))
  print(shown, row.names = FALSE)
  cat("\nIntervals at level", format(stored_level(own)), "are for:", own$intervals_for, "\n")
  if (nzchar(own$result$reason)) cat("Reason:", own$result$reason, "\n")
  for (one in c(own$result$facts, own$result$legend)) cat(one[[1L]], ": ", one[[2L]], "\n", sep = "")
  cat("Release SHA:", own$sha256, if (isTRUE(own$verified)) "(verified)" else "(not verified: install.packages(\"digest\"))", "\n")
  cat(own$by, " wrote these estimates into the file of the release; to compute them again: confide infer\n", sep = "")
  invisible(x)
}

has_estimates <- function(x) any(kinds_of(answered(x))$kind == "estimate")

lines <- function(x) {
  if (x$simulated) cat("SIMULATED NOISE: protects no one\n")
  cat("Estimated: ", x$target, "\n", sep = "")
  cat("Method:    ", x$method$name, " ", x$method$version, ", status ", x$status, "\n", sep = "")
  cat("Guarantee: ", x$guarantee, "\n", sep = "")
}
