package main

import "github.com/sealc2/sealc2/engine/status"

// protect runs one export's body. A panic in it becomes an Internal error, so that none reaches the host.
func protect(op string, body func() error) (err error) {
	defer status.Recover(op, &err)
	logLevel.Store(int32(parseLogLevel(environment("RUST_LOG"))))
	return body()
}
