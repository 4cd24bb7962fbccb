# Spans, annotations, parameters and the state of the run.

sonde_span <- function(.name, .code, ...) {
    if (is.null(problem) && .Call(C_span_begin, .name, list(...))) {
        on.exit(.Call(C_span_end))
    }
    .code
}

sonde_span_begin <- function(.name, ...) {
    invisible(is.null(problem) && .Call(C_span_begin, .name, list(...)))
}

sonde_span_end <- function() {
    if (is.null(problem)) .Call(C_span_end)
    invisible()
}

sonde_span_open <- function(.name, ..., .parent = NULL, .start = NULL) {
    if (is.null(problem)) {
        .Call(C_span_open, .name, list(...), .parent, .start)
    } else {
        without_library("sonde_span")
    }
}

sonde_span_close <- function(.span, ..., .end = NULL) {
    if (is.null(problem)) .Call(C_span_close, .span, list(...), .end)
    invisible()
}

sonde_span_at <- function(.name, .start, .end, ...) {
    if (is.null(problem)) .Call(C_span_at, .name, .start, .end, list(...))
    invisible()
}

sonde_annotate <- function(.text, ...) {
    if (is.null(problem)) .Call(C_annotate, .text, list(...))
    invisible()
}

sonde_config <- function(...) {
    if (is.null(problem)) .Call(C_config, list(...))
    invisible()
}

sonde_level <- function() if (is.null(problem)) .Call(C_level) else 0L

sonde_dropped <- function() if (is.null(problem)) .Call(C_dropped) else 0

sonde_check <- function() if (is.null(problem)) .Call(C_check) else problem

sonde_connect <- function(socket, level = 1L) {
    is.null(problem) && .Call(C_connect, socket, level)
}
