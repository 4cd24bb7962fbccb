package main

import (
	"context"
	"sonde"
	"time"
)

func main() {
	loss := sonde.NewGauge("loss", sonde.T("model", "sin"))
	seconds := sonde.NewGauge("step_seconds", sonde.Unit("seconds"))
	for epoch := 1; epoch <= 3; epoch++ {
		_, span := sonde.StartSpan(context.Background(), "epoch", sonde.T("number", epoch))
		for step := 1; step <= 10; step++ {
			timer := seconds.StartTimer()
			time.Sleep(20 * time.Millisecond)
			timer.Stop()
			loss.Emit(1 / float64(epoch*step))
		}
		span.End()
	}
}
