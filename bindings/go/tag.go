//go:build cgo

package sonde

/*
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unsafe"
)

// A Tag is a key and a value. T makes it.
type Tag struct {
	Key, Value string
}

// T makes a tag from a value of any type. Numbers have their shortest form that reads back as the
// same number (0.1, 1e-05); a type with a String method has what that returns.
func T(key string, value any) Tag {
	switch v := value.(type) {
	case string:
		return Tag{key, v}
	case int:
		return Tag{key, strconv.Itoa(v)}
	case float64:
		return Tag{key, formatReal(v, 64)}
	case float32:
		return Tag{key, formatReal(float64(v), 32)}
	}
	return Tag{key, fmt.Sprint(value)}
}

func formatReal(value float64, bits int) string {
	size := math.Abs(value)
	switch {
	case math.IsNaN(value):
		return "nan"
	case math.IsInf(value, 1):
		return "inf"
	case math.IsInf(value, -1):
		return "-inf"
	case size == 0 || (size >= 1e-4 && size < 1e15):
		return strconv.FormatFloat(value, 'f', -1, bits)
	}
	return strconv.FormatFloat(value, 'e', -1, bits)
}

// Appends the text up to its first NUL, and a NUL.
func appendText(block []byte, text string) []byte {
	if end := strings.IndexByte(text, 0); end >= 0 {
		text = text[:end]
	}
	return append(append(block, text...), 0)
}

// Makes the block that shim.h takes, which Go's garbage collector owns.
func pack(name string, tags []Tag) (*C.char, C.size_t) {
	if len(tags) > C.SHIM_TAGS_MAX {
		tags = tags[:C.SHIM_TAGS_MAX]
	}
	block := appendText(make([]byte, 0, 128), name)
	for _, tag := range tags {
		block = appendText(appendText(block, tag.Key), tag.Value)
	}
	return (*C.char)(unsafe.Pointer(&block[0])), C.size_t(len(tags))
}
