# Tests the additions of the package to sonde.h: timers, classes of values and times, processes,
# numbers in tags.
library(sonde)
library(parallel)

scope <- sonde_gauge("scope_seconds", .unit = "seconds")
durations <- sonde_gauge("durations", .unit = "seconds")
busy <- sonde_counter("busy_seconds", .unit = "seconds")
fails <- function(code) inherits(try(code, silent = TRUE), "try-error")

stopifnot(sonde_timer(scope, sonde_timer(busy, "a result")) == "a result")
sonde_span("outer", text = "cut", n = NULL, {
    stopifnot(fails(sonde_timer(scope, sonde_span("inner", stop("spans and timers end")))))
})
for (i in 1:2) {
    sonde_span("skipped", next)
}
sonde_add(busy, as.difftime(1, units = "mins"))
sonde_emit(durations, as.difftime(1500, units = "secs") / 1000)

# libsonde refuses a definition that exceeds a limit, and the program continues.
many <- as.list(setNames(1:20, paste0("k", 1:20)))
stopifnot(!sonde_is_on(sonde_gauge("many", many)), !sonde_is_on(sonde_gauge("not a name")))
sonde_emit(sonde_group(rep(list(scope), 5000)), numeric(5000))
sonde_emit(sonde_group(), numeric())
stopifnot(sonde_is_on(scope) == (sonde_level() > 0))
if (!is.null(sonde_check())) {
    message(sonde_check())
}
both <- sonde_group(sonde_gauge("first"), sonde_gauge("second"))
sonde_emit(both, 1)

# Only arguments of a wrong type are errors.
if (is.null(sonde_check())) {
    stopifnot(fails(sonde_gauge(1)), fails(sonde_gauge(NA_character_)), fails(sonde_emit(1, 1)),
              fails(sonde_emit(scope, "1")), fails(sonde_emit(scope, factor("1"))),
              fails(sonde_emit(scope, 1:2, 1)), fails(sonde_emit(scope, 1, "now")),
              fails(sonde_set(both, 1)), fails(sonde_group(both)), fails(sonde_span_close(1)))
}

# Values and times: vectors, integers, logicals, NA, rows of a data frame.
second <- as.POSIXct("2026-01-01", tz = "UTC") - as.difftime(1:4, units = "mins")
vector <- sonde_gauge("vector")
sonde_emit(vector, c(1L, NA, 3L, 4L), c(second[1:3], NA))
sonde_emit(vector, TRUE, as.Date(second[1]))
sonde_emit(vector, numeric())
sonde_emit(vector, c(-1.5, NaN, Inf), as.numeric(second[1]) + c(0.001, 0.000001, 1))
sonde_emit(vector, 7, as.POSIXlt(second[4]))
table <- data.frame(a = c(1, NA), b = c(TRUE, FALSE))
sonde_emit(sonde_group(list(sonde_gauge("a"), sonde_gauge("b"))), table, second[2:1])

# Each forked process has its own nested spans; all add to one counter.
shared <- sonde_counter("shared")
invisible(mclapply(0:19, mc.cores = 2, function(i) {
    sonde_span("parent", i = i, {
        sonde_span("child", for (j in 1:100) sonde_add(shared), i = i)
    })
}))

# A metric that arrives in another process is defined there again.
elsewhere <- sonde_gauge("elsewhere", rank = 1)
rows <- sonde_group(elsewhere)
cluster <- makePSOCKcluster(1, rscript_args = "--vanilla")
invisible(clusterCall(cluster, function(elsewhere, rows, time) {
    for (i in 1:3) {
        sonde::sonde_gauge(paste0("unused", i))
    }
    sonde::sonde_emit(elsewhere, 0.5, time)
    sonde::sonde_emit(rows, 0.25, time + 1)
}, elsewhere, rows, second[1]))
stopCluster(cluster)

span <- sonde_span_open("late", a = 1, .start = second[2])
sonde_span_close(span, b = 2L, .end = second[1])
sonde_span_close(span)
sonde_annotate("texts", latin = iconv("\u00e9", "UTF-8", "latin1"), utf = "\u00e9",
               level = factor("high"), many = c(1, 2.5), c(x = 1, y = 0.1), f = stopifnot,
               call = quote(stop()), na = NA, whole = NA_integer_, real = NA_real_, nan = NaN,
               none = character())
sonde_annotate("numbers", tenth = 0.1, third = 1 / 3, small = 1e-5, smaller = -2.5e-300,
               four = 1e-4, large = 1e22, whole = 1200, zero = 0L,
               minus = sonde_time(-9223372036, -854775807), single = 0.25, yes = TRUE, no = FALSE,
               text = "a")
