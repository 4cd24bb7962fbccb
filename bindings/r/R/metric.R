# Metrics and groups: external pointers, see src/sonde_r.c.

define <- function(kind, name, tags, unit, help, level) {
    if (is.null(problem)) {
        .Call(C_define, kind, name, tags, unit, help, level)
    } else {
        without_library(c("sonde_gauge", "sonde_counter")[kind + 1L], "sonde_metric")
    }
}

without_library <- function(...) structure(list(), class = c(...))

sonde_gauge <- function(.name, ..., .unit = NULL, .help = NULL, .level = 1L) {
    define(0L, .name, list(...), .unit, .help, .level)
}

sonde_counter <- function(.name, ..., .unit = NULL, .help = NULL, .level = 1L) {
    define(1L, .name, list(...), .unit, .help, .level)
}

sonde_group <- function(...) {
    metrics <- list(...)
    if (length(metrics) == 1L && is.list(metrics[[1L]]) && !is.object(metrics[[1L]])) {
        metrics <- metrics[[1L]]
    }
    if (is.null(problem)) .Call(C_group, metrics) else without_library("sonde_group")
}

sonde_is_on <- function(metric) is.null(problem) && .Call(C_is_on, metric)

sonde_emit <- function(metric, value, time = NULL) {
    if (is.null(problem)) .Call(C_emit, metric, value, time)
    invisible()
}

sonde_set <- function(metric, value) {
    if (is.null(problem)) .Call(C_set, metric, value)
    invisible()
}

sonde_add <- function(metric, amount = 1) {
    if (is.null(problem)) .Call(C_add, metric, amount)
    invisible()
}

sonde_timer <- function(metric, code) {
    if (sonde_is_on(metric)) {
        record <- if (inherits(metric, "sonde_counter")) sonde_add else sonde_emit
        start <- .Call(C_clock)
        on.exit(record(metric, .Call(C_clock) - start))
    }
    code
}

sonde_time <- function(seconds, nanoseconds = 0) {
    if (!is.null(problem)) {
        return(seconds)
    }
    count <- max(length(seconds), length(nanoseconds))
    .Call(C_time, rep_len(seconds, count), rep_len(nanoseconds, count))
}

print.sonde_metric <- function(x, ...) {
    cat("<", class(x)[1L], if (sonde_is_on(x)) ", on>" else ", off>", "\n", sep = "")
    invisible(x)
}

print.sonde_group <- print.sonde_metric
