// The program of test_languages.py in Go: program BASE, where BASE is in ns since the epoch.
package main

import (
	"context"
	"os"
	"sonde"
	"strconv"
	"time"
)

func main() {
	ns, err := strconv.ParseInt(os.Args[1], 10, 64)
	if err != nil {
		os.Exit(2)
	}
	base := time.Unix(0, ns)
	loss := sonde.NewGauge("loss", sonde.T("model", "sin"), sonde.T("rank", 3))
	written := sonde.NewGauge("written", sonde.Unit("bytes"), sonde.Help("bytes written so far"))
	hidden := sonde.NewGauge("hidden", sonde.MinLevel(2))
	warmth := sonde.NewGauge("warmth")
	steps := sonde.NewCounter("steps", sonde.T("exact", true), sonde.T("rate", 0.1))
	both := sonde.NewGroup(sonde.NewGauge("left"), sonde.NewGauge("right"))

	sonde.Config(sonde.T("lr", 0.01), sonde.T("optimizer", "adam"))
	for i := 1; i <= 10; i++ {
		loss.Emit(1 / float64(i))
		written.EmitAt(float64(1024*i), base.Add(time.Duration(i)*time.Millisecond))
		hidden.Emit(float64(i))
		steps.Add(1)
	}
	warmth.Set(21.5)
	both.EmitAt(base, 1, 2)
	both.EmitAt(base.Add(time.Millisecond), 3, sonde.Missing())
	epoch, span := sonde.StartSpan(context.Background(), "epoch", sonde.T("number", 1))
	for i := 1; i <= 3; i++ {
		_, step := sonde.StartSpan(epoch, "step", sonde.T("number", i), sonde.T("phase", "warm up"))
		step.End()
	}
	span.End()
	sonde.RecordSpan("load", base, base.Add(1500*time.Millisecond), sonde.T("file", "a b"))
	ctx, task := sonde.StartSpan(context.Background(), "task", sonde.T("of", "none"))
	ended := make(chan bool)
	go func() {
		_, part := sonde.StartSpan(ctx, "part")
		part.End()
		task.End()
		close(ended)
	}()
	<-ended
	sonde.Annotate("done", sonde.T("file", "ck-12"))
}
