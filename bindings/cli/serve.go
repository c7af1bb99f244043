package main

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sealc2/sealc2/bindings/grpc"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// serveJSON is the result of `serve --json`, written when it ends.
type serveJSON struct {
	Listen    string `json:"listen"`
	Completed uint64 `json:"completed"` // proofs made
	Failed    uint64 `json:"failed"`    // jobs that ended in an error
}

// The memory for submissions. By default fifteen 32 GiB C1 outputs in the form that Curio sends them find room beside two messages on their way.
const (
	usualQueueBytes = 3 << 29
	minQueueBytes   = grpc.ReceiveBytes + grpc.MaxMessageBytes
	maxMessages     = 4 // on their way at a time
)

// serveCommand is `serve`.
func (a *app) serveCommand() *cobra.Command {
	var listen, paramPath, queueMemory, timelinePath string
	var waiting int
	c := &cobra.Command{
		Use:   "serve [--listen ADDRESS] [--params DIR]",
		Short: "Prove for Curio: the service that [Cuzk] Address names",
		Long: "Answers cuzk's gRPC service on a unix socket or TCP, in plain text and to whoever can reach it, until the\n" +
			"first SIGINT or SIGTERM, which cancels what runs; the second one ends the process.\n\n" +
			"PoRep C2 is proved; other kinds are refused. --memory is for all: the queue's part comes out of it.\n\n" +
			"--timeline appends the stages of each job to a file, once it has ended. Times are since the line that begins with #.\n\n" +
			"--params accepts development keys with a warning. Without it the folder is " + envParamDir + ",\n" +
			"and development keys need " + envAllowDev + "=1.",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if waiting < 1 || waiting > 1<<20 {
				return usage("--queue", "1 to 1048576", strconv.Itoa(waiting))
			}
			config, err := a.config()
			if err != nil {
				return err
			}
			limits, err := a.limits()
			if err != nil {
				return err
			}
			queueBytes := max(minQueueBytes, min(usualQueueBytes, limits.HostBytes/4))
			if queueMemory != "" {
				if queueBytes, err = parseSize("--queue-memory", queueMemory); err != nil {
					return err
				}
				if queueBytes < minQueueBytes {
					return usage("--queue-memory", host.FormatBytes(minQueueBytes)+" or more", queueMemory)
				}
			}
			// A third of it is for messages on their way, or what the first takes.
			messages := min(max(1, queueBytes/3/grpc.ReceiveBytes), maxMessages)
			config.QueueBytes = queueBytes - messages*grpc.ReceiveBytes
			if config.HostBytes = limits.HostBytes - messages*grpc.ReceiveBytes; config.HostBytes <= config.QueueBytes {
				return status.New(status.NoMemory, "cli.Serve", "--memory", "more than the queue's "+host.FormatBytes(queueBytes), host.FormatBytes(limits.HostBytes))
			}
			var timeline *os.File
			if timelinePath != "" {
				if timeline, err = os.OpenFile(timelinePath, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644); err != nil {
					return fileError("cli.Serve", "--timeline", err)
				}
				defer timeline.Close()
			}
			listener, err := grpc.Listen(listen)
			if err != nil {
				return err
			}
			defer listener.Close()
			e, err := a.open(config)
			if err != nil {
				return err
			}
			defer e.Close()
			served, ok := e.(grpc.Engine)
			status.Check(ok, "cli.Serve", "an engine that takes jobs")
			if timeline != nil {
				told, ok := e.(toldEngine)
				status.Check(ok, "cli.Serve", "an engine that tells its stages")
				follower, err := followTimeline(told, timeline, a.con.log)
				if err != nil {
					return err
				}
				defer follower.close()
			}
			server, err := grpc.New(grpc.Config{
				Engine: served, Params: a.paramSource(paramPath), Waiting: waiting, Messages: int(messages), Log: a.con.log,
			})
			if err != nil {
				return err
			}
			if err := server.Serve(c.Context(), listener); err != nil {
				return err
			}
			v := serveJSON{Listen: listen}
			v.Completed, v.Failed = server.Totals()
			return a.result(v, func(w io.Writer) { fmt.Fprintf(w, "%d proofs made, %d jobs failed\n", v.Completed, v.Failed) })
		},
	}
	c.Flags().StringVar(&listen, "listen", grpc.DefaultAddress, "unix:///path of a socket, or host:port")
	c.Flags().StringVar(&paramPath, "params", "", paramsUsage)
	c.Flags().IntVar(&waiting, "queue", 64, "jobs of a priority and higher ones that may wait")
	c.Flags().StringVar(&queueMemory, "queue-memory", "", "memory for the C1 outputs that come and wait, as 2GiB; empty: a quarter of the limit, at most 1.5GiB")
	c.Flags().StringVar(&timelinePath, "timeline", "", "file to append the stages of all jobs to, as cuzk's TIMELINE lines")
	c.Flags().Var(&a.device, "device", "where to prove")
	a.policyFlags(c)
	return c
}
