package main

import "C"

import (
	"sync/atomic"

	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// sealc2go_meet does nothing: it is the first call of a thread, made by guard.c with signals blocked.
//
//export sealc2go_meet
func sealc2go_meet() {}

// polling says that the runtime's poller is made.
var polling atomic.Bool

// When the library loads there are descriptors for it as a rule.
func init() { _ = startPoller("capi.init") }

// startPoller makes the runtime's poller, once.
func startPoller(op string) error {
	if polling.Load() {
		return nil
	}
	err := host.StartPoller(op)
	polling.Store(err == nil)
	return err
}

// protect runs one export's body. A panic in it becomes an Internal error, so that none reaches the host.
func protect(op string, body func() error) (err error) {
	defer status.Recover(op, &err)
	if err := startPoller(op); err != nil {
		return err
	}
	logLevel.Store(int32(parseLogLevel(environment("RUST_LOG"))))
	return body()
}
