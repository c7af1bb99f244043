// Package main is the C face of sealc2: build it with -buildmode=c-shared to get libsealc2.so. It holds the
// only exports, converts arguments and results, and recovers; what a proof needs is decided in engine.
//
// The way of a call: the exported function is C (native.c, ffi.c), checked by the compiler against the
// public headers in include/. It refuses calls that must not enter Go (guard.c: a child after fork, a
// callback), and else calls the Go function of the same purpose (native.go, ffi.go), whose body is one
// guard call. Go functions are named sealc2go_* and hidden by exports.map.
//
// Only this package and bindings/cli read the environment; here by C getenv at each call, since Go's copy
// of it is made when the library loads. Only this package keeps a global: the open engines and jobs.
package main

func main() {}
