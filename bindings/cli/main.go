// Command sealc2 proves and verifies Filecoin sectors from the command line, makes development parameters,
// and prints the digests by which circuits and witnesses are compared with the reference.
//
// It is a thin face of package engine: it reads files, flags and the environment, and writes results.
// Results go to stdout, logs and progress to stderr. Exit codes: 0 done or verified, 1 refused or not
// verified, 2 usage.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/sealc2/sealc2/engine"
)

func main() {
	// The first signal cancels the work, which ends cleanly; the second one ends the process.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	a := &app{
		in:     os.Stdin,
		out:    os.Stdout,
		con:    &console{w: os.Stderr, terminal: isTerminal(os.Stderr)},
		getenv: os.Getenv,
		open:   func(config engine.Config) (prover, error) { return engine.Open(config) },
	}
	os.Exit(a.run(ctx, os.Args[1:]))
}
