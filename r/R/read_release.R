# Files of releases. The body is canonical JSON, so that its SHA-256 is that of its own bytes.

known_format <- "1.0"

read_release <- function(path) {
  bytes <- readBin(path, "raw", file.size(path))
  file <- parsed(bytes)
  check_kind(file)
  verified <- verify(bytes, "{\"body\":", ",\"confide\":\"release\",\"format_version\":\"", file$sha256, "release")
  result <- file$results$result
  if (!is.null(result)) {
    verify(bytes, "\",\"result\":", ",\"sha256\":\"", file$results$sha256, "results", from = "\"results\":{\"by\":\"")
    if (!identical(result$release_sha256, file$sha256)) {
      stop("the results in this file belong to another release; write it again: confide infer release.json -o FILE",
           call. = FALSE)
    }
  }
  if (!is.null(result$analyses)) {
    return(publication(file, result, verified))
  }
  release_of(file, result, verified)
}

parsed <- function(bytes) {
  text <- rawToChar(bytes)
  Encoding(text) <- "UTF-8"
  tryCatch(
    jsonlite::fromJSON(text, simplifyVector = FALSE, bigint_as_char = TRUE),
    error = function(e) stop("this is no release of confide: not JSON; give the file that confide wrote", call. = FALSE)
  )
}

check_kind <- function(file) {
  if (!is.list(file) || !identical(file$confide, "release")) {
    stop("this is no release of confide; give the file that `confide release -o` or `confide infer -o` wrote",
         call. = FALSE)
  }
  if (!identical(file$format_version, known_format)) {
    stop(sprintf("format %s cannot be read by this package, which knows format %s; take the package of the confide that wrote it",
                 format(file$format_version), known_format), call. = FALSE)
  }
}

# TRUE where the bytes have the digest that the file states, NA where no package is there that computes it. The body is what the file begins
# with: bytes farther on are not what the JSON reader takes for it.
verify <- function(bytes, head, tail, stated, what, from = NULL) {
  start <- if (is.null(from)) 1L else last_of(bytes, from)
  own <- first_of(bytes, head, start)
  end <- if (is.null(from)) last_of(bytes, tail) else first_before_end(bytes, tail)
  if (is.na(own) || is.na(end) || own + nchar(head) > end - 1L || (is.null(from) && own != 1L)) {
    return(altered(what))
  }
  found <- sha256_of(bytes[(own + nchar(head)):(end - 1L)])
  if (is.na(found)) {
    return(NA)
  }
  if (!identical(found, stated)) altered(what) else TRUE
}

altered <- function(what) {
  stop(sprintf("the %s in this file were changed or laid out again after confide wrote them: the SHA-256 does not match; ",
               what), "ask for the original file", call. = FALSE)
}

matches_of <- function(bytes, text) {
  as.integer(grepRaw(text, bytes, fixed = TRUE, all = TRUE))
}

last_of <- function(bytes, text) {
  found <- matches_of(bytes, text)
  if (length(found)) found[length(found)] else NA_integer_
}

first_of <- function(bytes, text, start) {
  found <- matches_of(bytes, text)
  found <- found[found >= start]
  if (length(found)) found[1L] else NA_integer_
}

# Of the two digests at the end of the file the first is that of the results.
first_before_end <- function(bytes, text) {
  found <- matches_of(bytes, text)
  if (length(found) >= 2L) found[length(found) - 1L] else NA_integer_
}

sha256_of <- function(bytes) {
  if (requireNamespace("digest", quietly = TRUE)) {
    return(digest::digest(bytes, algo = "sha256", serialize = FALSE))
  }
  NA_character_
}

release_of <- function(file, result, verified) {
  body <- file$body
  plan <- body$plan
  structure(
    list(
      sha256 = file$sha256,
      verified = verified,
      by = file$results$by,
      status = if (is.null(result)) body$status else result$status,
      method = plan$method,
      target = if (is.null(result)) plan$target else result$target,
      intervals_for = if (is.null(result)) plan$intervals_for else result$intervals_for,
      guarantee = guarantee_text(body$guarantees[[1L]]),
      relation = body$guarantees[[1L]]$relation,
      unit = body$guarantees[[1L]]$unit,
      simulated = isTRUE(body$simulated),
      result = result,
      body = body
    ),
    class = "confide_release"
  )
}

publication <- function(file, result, verified) {
  named <- in_order(names(result$analyses), file$body$plan$method$parameters$analyses)
  analyses <- lapply(named, function(name) {
    own <- result$analyses[[name]]
    one <- release_of(file, own$result, verified)
    one$status <- own$status
    one$target <- own$target
    one
  })
  structure(setNames(analyses, named), class = "confide_publication")
}

# In the order of the plan; JSON has them in the order of the alphabet.
in_order <- function(found, asked) {
  asked <- vapply(asked, function(one) one$analysis, "")
  c(intersect(asked, found), setdiff(found, asked))
}

guarantee_text <- function(stated) {
  levels <- Filter(function(one) is.character(one) && length(one) == 1L && grepl("^-?0x", one), stated)
  levels <- vapply(levels, as.numeric, 0)
  levels <- levels[!(names(levels) == "delta" & levels == 0)]
  inside <- c(sprintf("%s=%s", names(levels), format(levels, digits = 4, trim = TRUE)), stated$relation)
  if (!identical(stated$unit, "record")) inside <- c(inside, paste0("unit=", stated$unit))
  sprintf("%s(%s)", stated$type, paste(inside, collapse = ", "))
}

noisy_statistics <- function(x) {
  stopifnot(inherits(x, "confide_release"))
  lapply(x$body$statistics, function(one) {
    size <- as.integer(unlist(one$values$shape))
    text <- as.character(unlist(one$values$data))
    list(values = shaped(as.numeric(text) * fraction(one$step), size), exact = shaped(text, size), step = one$step,
         law = one$law, scale = one$scale, norm = one$norm)
  })
}

# The last index runs fastest in the file, the first in R.
shaped <- function(values, size) {
  if (length(size) < 2L) values else aperm(array(values, rev(size)), rev(seq_along(size)))
}

fraction <- function(text) {
  parts <- as.numeric(strsplit(text, "/", fixed = TRUE)[[1L]])
  parts[1L] / parts[2L]
}
