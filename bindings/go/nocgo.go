//go:build !cgo

// Package sonde calls libsonde, and needs cgo.
package sonde

var _ = sonde_needs_cgo__set_CGO_ENABLED_to_1_and_install_a_C_compiler
