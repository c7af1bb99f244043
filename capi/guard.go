package main

import "C"

import "github.com/sealc2/sealc2/engine/status"

// sealc2go_meet does nothing: it is the first call of a thread, made by guard.c with signals blocked.
//
//export sealc2go_meet
func sealc2go_meet() {}

// protect runs one export's body. A panic in it becomes an Internal error, so that none reaches the host.
func protect(op string, body func() error) (err error) {
	defer status.Recover(op, &err)
	logLevel.Store(int32(parseLogLevel(environment("RUST_LOG"))))
	return body()
}
