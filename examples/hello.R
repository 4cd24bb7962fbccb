library(sonde)

loss <- sonde_gauge("loss", model = "sin")
step_seconds <- sonde_gauge("step_seconds", .unit = "seconds")
for (epoch in 1:3) {
    sonde_span("epoch", number = epoch, {
        for (step in 1:10) {
            sonde_timer(step_seconds, Sys.sleep(0.02))
            sonde_emit(loss, 1 / (epoch * step))
        }
    })
}
