// Prints "CALL ns" for each call and round; see languages.py.
package main

import (
	"context"
	"fmt"
	"sonde"
	"time"
)

func measure(name string, times int, call func(int)) {
	start := time.Now()
	for i := 0; i < times; i++ {
		call(i)
	}
	ns := float64(time.Since(start).Nanoseconds()) / float64(times)
	fmt.Printf("%s %.2f\n", name, ns)
	time.Sleep(2 * time.Millisecond) // the agent drains the ring meanwhile
}

func main() {
	gauge, counter := sonde.NewGauge("bench_emit"), sonde.NewCounter("bench_add")
	off := sonde.NewGauge("bench_off", sonde.MinLevel(4))
	for round := 0; round < 101; round++ {
		measure("emit", 20000, func(i int) { gauge.Emit(float64(i)) })
		measure("add", 20000, func(int) { counter.Add(1) })
		measure("off", 20000, func(i int) { off.Emit(float64(i)) })
		measure("span", 1000, func(i int) {
			_, span := sonde.StartSpan(context.Background(), "step", sonde.T("number", i))
			span.End()
		})
	}
}
