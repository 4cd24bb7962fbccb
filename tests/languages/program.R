# The program of test_languages.py in R: program.R BASE, where BASE is in ns since the epoch.
library(sonde)

base <- commandArgs(TRUE)[1]
digits <- nchar(base)
seconds <- as.numeric(substr(base, 1, digits - 9))
nanoseconds <- as.numeric(substr(base, digits - 8, digits))
after <- function(ms) sonde_time(seconds, nanoseconds + 1e6 * ms)

loss <- sonde_gauge("loss", model = "sin", rank = 3)
written <- sonde_gauge("written", .unit = "bytes", .help = "bytes written so far")
hidden <- sonde_gauge("hidden", .level = 2)
warmth <- sonde_gauge("warmth")
steps <- sonde_counter("steps", list(exact = TRUE), rate = 0.1)
both <- sonde_group(sonde_gauge("left"), sonde_gauge("right"))

sonde_config(lr = 0.01, optimizer = "adam")
for (i in 1:10) {
    sonde_emit(loss, 1 / i)
    sonde_emit(hidden, i)
    sonde_add(steps)
}
sonde_emit(written, 1024L * 1:10, after(1:10))
sonde_set(warmth, 21.5)
sonde_emit(both, rbind(c(1, 2), c(3, NA)), after(0:1))
sonde_span("epoch", number = 1, {
    for (i in 1:3) {
        sonde_span_begin("step", number = i, phase = "warm up")
        sonde_span_end()
    }
})
sonde_span_at("load", after(0), after(1500), file = "a b")
task <- sonde_span_open("task", of = "none")
sonde_span_close(sonde_span_open("part", .parent = task))
sonde_span_close(task)
sonde_annotate("done", file = "ck-12")
