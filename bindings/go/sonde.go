//go:build cgo

// Package sonde is sonde.h for Go: it puts your own numbers on a job's timeline.
//
//	loss := sonde.NewGauge("loss", sonde.T("model", "sin"))
//	for epoch := 1; epoch <= 3; epoch++ {
//		ctx, span := sonde.StartSpan(ctx, "epoch", sonde.T("number", epoch))
//		loss.Emit(train(ctx, epoch))
//		span.End()
//	}
//
// A metric has points or a cell; do not mix them. A point (Emit) is a value at the time of the
// call. A cell (Set, Add) is updated in place, and the agent samples it.
//
// All functions may be called from any goroutine. None blocks, panics or fails. Without `sonde run`
// each call is one branch. If the agent cannot keep up, libsonde drops the newest points and counts
// them (Dropped). Text ends at its first NUL.
package sonde

/*
#cgo pkg-config: sonde
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"errors"
	"syscall"
	"unsafe"
)

// Level returns the level of the run, 0 to 4; 0 if sonde is off. Use it to skip work that is only
// done for measuring.
func Level() int {
	return int(C.sonde_level())
}

// Dropped returns the number of values that this process has dropped so far; see sonde.h.
func Dropped() uint64 {
	return uint64(C.sonde_dropped())
}

// Check returns nil if an agent records the values of this process, or if sonde is off. The error
// says what is wrong, and what the user can do.
func Check() error {
	var why [1024]C.char
	if C.sonde_check(&why[0], C.size_t(len(why))) == 0 {
		return nil
	}
	return errors.New(C.GoString(&why[0]))
}

// Connect connects to the agent that listens at the socket, for a program that was started without
// SONDE_SOCKET and SONDE_LEVEL.
func Connect(socketPath string, level int) error {
	path := C.CString(socketPath)
	defer C.free(unsafe.Pointer(path))
	if status := C.sonde_connect(path, C.int(level)); status < 0 {
		return syscall.Errno(-status)
	}
	return nil
}

// Annotate records an annotation at this instant.
func Annotate(text string, tags ...Tag) {
	if Level() > 0 {
		block, count := pack(text, tags)
		C.shim_annotate(block, count)
	}
}

// Config records parameters of the run: sonde.Config(sonde.T("lr", 0.01)). The last value of a key
// counts.
func Config(parameters ...Tag) {
	if Level() == 0 {
		return
	}
	for i := range parameters {
		block, count := pack("", parameters[i:i+1])
		C.shim_config(block, count)
	}
}
