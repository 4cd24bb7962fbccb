// Tests the additions of the package to sonde.h: timers, contexts, goroutines, numbers in tags.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sonde"
	"sync"
	"time"
)

func expect(right bool, words string) {
	if !right {
		fmt.Fprintln(os.Stderr, "this is not true:", words)
		os.Exit(1)
	}
}

func panics(seconds sonde.Gauge, ctx context.Context) {
	defer func() { _ = recover() }()
	defer seconds.StartTimer().Stop()
	_, inner := sonde.StartSpan(ctx, "inner")
	defer inner.End()
	panic("deferred calls end timers and spans")
}

func main() {
	on := sonde.Level() > 0
	scope := sonde.NewGauge("scope_seconds", sonde.Unit("seconds"))
	busy := sonde.NewCounter("busy_seconds", sonde.Unit("seconds"))
	func() {
		defer scope.StartTimer().Stop()
		defer busy.StartTimer().Stop()
	}()
	ctx, outer := sonde.StartSpan(context.Background(), "outer", sonde.T("text", "cut\x00off"))
	panics(scope, ctx)
	outer.End()
	outer.End() // a second call does nothing
	busy.Add(time.Minute.Seconds())

	// libsonde refuses a definition that exceeds a limit, and the program continues.
	var many []sonde.Option
	for i := 0; i < 20; i++ {
		many = append(many, sonde.T(fmt.Sprint("k", i), i))
	}
	expect(!sonde.NewGauge("many", many...).On(), "20 tags are refused")
	expect(!sonde.NewGauge("not a name").On(), "a bad name is refused")
	expect(scope.On() == on, "a metric is on if sonde is")
	expect(sonde.Check() == nil, "an agent records this process")
	sonde.NewGroup().Emit()
	var off sonde.Gauge
	off.Emit(1)

	// Goroutines move between threads, and the spans of each keep their parents.
	shared := sonde.NewCounter("shared")
	short := sonde.NewGroup(sonde.NewGauge("first"), sonde.NewGauge("second"))
	values := []float64{1, 7}
	short.Emit(values[:1]...)
	expect(values[1] == 7, "a short row leaves the caller's array alone")
	var all sync.WaitGroup
	for i := 0; i < 20; i++ {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			ctx, parent := sonde.StartSpan(context.Background(), "parent", sonde.T("i", i))
			runtime.Gosched()
			_, child := sonde.StartSpan(ctx, "child", sonde.T("i", i))
			for j := 0; j < 100; j++ {
				shared.Add(1)
			}
			child.End()
			parent.End()
		}(i)
	}
	all.Wait()

	sonde.Annotate("numbers", sonde.T("tenth", 0.1), sonde.T("third", 1.0/3),
		sonde.T("small", 1e-5), sonde.T("smaller", -2.5e-300), sonde.T("four", 1e-4),
		sonde.T("large", 1e22), sonde.T("whole", 1200.0), sonde.T("zero", uint32(0)),
		sonde.T("minus", int64(-9223372036854775807)), sonde.T("single", float32(0.25)),
		sonde.T("yes", true), sonde.T("no", false), sonde.T("text", "a"))
}
