# The table of a result: its columns with their kinds, as confide wrote them. What is not finite is NA.

numbers <- function(values) {
  vapply(values, function(one) if (is.null(one)) NA_real_ else as.numeric(one), 0)
}

kinds_of <- function(result) {
  data.frame(
    name = vapply(result$column_kinds, function(one) one[[1L]], ""),
    kind = vapply(result$column_kinds, function(one) one[[2L]], "")
  )
}

column <- function(result, name, kind) {
  if (kind == "name") return(as.character(unlist(result$term)))
  if (kind == "text") return(as.character(unlist(result$labels[[name]])))
  if (kind == "number") return(numbers(result$labels[[name]]))
  numbers(result[[name]])
}

as.data.frame.confide_release <- function(x, row.names = NULL, optional = FALSE, ...) {
  kinds <- kinds_of(answered(x))
  found <- lapply(seq_len(nrow(kinds)), function(k) column(x$result, kinds$name[k], kinds$kind[k]))
  names(found) <- kinds$name
  as.data.frame(found, optional = TRUE, stringsAsFactors = FALSE, row.names = row.names)
}

answered <- function(x) {
  if (is.null(x$result)) {
    stop("this file holds the noisy statistics of the release and no estimates; anyone who has confide can ",
         "write them into it: confide infer release.json -o FILE", call. = FALSE)
  }
  x$result
}

# Table 1 prints texts such as "49.9 (9.7)"; its numbers are a long table, one row for each number and group. NULL for other results.
long_table <- function(x) answered(x)$cells

long_columns <- list(estimate = "estimate", std_err = "std_err", interval = c("ci_low", "ci_high"), share = "privacy_share")

# Columns by what they are; `of`: which of several of a kind.
of_kind <- function(x, kind, of = 1L) {
  if (!is.null(long_table(x))) {
    named <- long_columns[[kind]]
    return(if (length(named) < of) NULL else numbers(long_table(x)[[named[of]]]))
  }
  kinds <- kinds_of(answered(x))
  at <- which(kinds$kind == kind)
  if (length(at) < of) NULL else column(x$result, kinds$name[at[of]], kind)
}

estimates <- function(x) {
  found <- of_kind(x, "estimate")
  if (is.null(found)) {
    stop("this result has no column of estimates; its table: as.data.frame(x)", call. = FALSE)
  }
  # where a table says that its numbers mean nothing they are not given out, as in Python
  if (!is.null(long_table(x)) && answered(x)$status != "valid") found[] <- NA_real_
  setNames(found, terms_of(x))
}

# What each row is about: its name, or the labels to the left of its estimate.
terms_of <- function(x) {
  if (!is.null(long_table(x))) {
    row <- as.character(unlist(long_table(x)$variable))
    group <- as.character(unlist(long_table(x)$group))
    return(ifelse(group == "Total", row, paste(row, group, sep = " | ")))
  }
  kinds <- kinds_of(answered(x))
  first <- match("estimate", kinds$kind, nomatch = nrow(kinds) + 1L)
  left <- kinds[seq_len(first - 1L), ]
  named <- left$kind == "name"
  if (any(named)) return(column(x$result, left$name[named][1L], "name"))
  left <- left[left$kind %in% c("text", "number") & left$name != "n", ]
  parts <- lapply(seq_len(nrow(left)), function(k) {
    paste0(left$name[k], "=", column(x$result, left$name[k], left$kind[k]))
  })
  if (length(parts)) do.call(paste, c(parts, sep = ", ")) else as.character(seq_along(of_kind(x, "estimate")))
}

stored_level <- function(x) 1 - as.numeric(answered(x)$alpha)

no_covariance <- function(x) {
  stop("this result (", answered(x)$method, ") states a standard error for each row and no covariance between rows; ",
       "standard errors: tidy_release(x)$std.error", call. = FALSE)
}
