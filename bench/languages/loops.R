# Prints "CALL ns" for each call and round; see languages.py. "vector" is a point of a vector.
library(sonde)

gauge <- sonde_gauge("bench_emit")
counter <- sonde_counter("bench_add")
off <- sonde_gauge("bench_off", .level = 4)
values <- as.numeric(1:20000)

measure <- function(name, times, calls) {
    start <- Sys.time()
    calls(times)
    cat(sprintf("%s %.2f\n", name, as.numeric(Sys.time() - start, units = "secs") * 1e9 / times))
    Sys.sleep(0.002) # the agent drains the ring meanwhile
}

for (round in 1:101) {
    measure("emit", 1000, function(times) for (i in 1:times) sonde_emit(gauge, i))
    measure("vector", 20000, function(times) sonde_emit(gauge, values))
    measure("add", 1000, function(times) for (i in 1:times) sonde_add(counter, 1))
    measure("off", 1000, function(times) for (i in 1:times) sonde_emit(off, i))
    measure("span", 1000, function(times) for (i in 1:times) sonde_span("step", NULL, number = i))
}
