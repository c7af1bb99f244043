package main

// #cgo CFLAGS: -I${SRCDIR}/../include -std=gnu11 -Wall -Wextra
// #cgo LDFLAGS: -lpthread
import "C"
