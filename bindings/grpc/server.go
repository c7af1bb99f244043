package grpc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/sealc2/sealc2/engine"
	"github.com/sealc2/sealc2/engine/status"
)

// DefaultAddress is where Curio looks for its prover by default.
const DefaultAddress = "unix:///run/curio/cuzk.sock"

// Bounds of what the server keeps for connections. A stream whose message waits for its turn holds at most one window.
const (
	streamWindowBytes     = 1 << 20
	connectionWindowBytes = 8 << 20
	maxStreams            = 256 // of a connection
	askWidth              = 2   // small messages received at a time
	askLimit              = 256 // and those that wait
	endingTime            = 5 * time.Second
)

// ReceiveBytes is what a message on its way takes at most: as it comes, and whole, until the engine has copied it.
const ReceiveBytes = 2 * MaxMessageBytes

// Engine is the engine as the service uses it: engine.Engine, or what a test puts before one.
type Engine interface {
	Submit(ctx context.Context, request *engine.ProveRequest, options engine.SubmitOptions) (*engine.Job, error)
	Job(id engine.JobID) (*engine.Job, error)
	Jobs() []engine.JobProgress
	JobCounts() engine.JobCounts
	Metrics() string
	Devices() []string
	Preload(ctx context.Context, source engine.ParamSource, shapeName string) error
	Evict(ctx context.Context, source engine.ParamSource, shapeName string) error
}

// Config is fixed for the life of a Server.
type Config struct {
	// Engine has a queue (engine.Config.QueueBytes), and no jobs but the Server's, which does not close it.
	Engine Engine
	Params engine.ParamSource
	// Waiting is how many jobs of a priority and higher ones that have not begun the engine has at most, at least 1.
	Waiting int
	// Messages is how many submissions are received at a time, at least 1. Each takes up to ReceiveBytes, beside the engine's memory.
	Messages int
	Log      func(level, text string) // as engine.Config's; nil drops the lines
}

// Server is the service. Serve may be called once.
type Server struct {
	config      Config
	start       time.Time
	submissions *gate
	asks        *gate
	rpc         *rpc.Server

	mu     sync.Mutex
	closed bool
	// waiters counts the callers that wait for a job which ends with the last of them.
	waiters map[*engine.Job]int
}

// New makes a server. Errors: Caller for a bound out of its range.
func New(config Config) (*Server, error) {
	const op = "grpc.New"
	for _, bound := range []struct {
		name string
		got  int
	}{{"waiting jobs", config.Waiting}, {"messages", config.Messages}} {
		if bound.got < 1 {
			return nil, status.New(status.Caller, op, bound.name, "1 or more", fmt.Sprint(bound.got))
		}
	}
	s := &Server{
		config: config, start: time.Now(), waiters: map[*engine.Job]int{},
		submissions: newGate(config.Messages, config.Waiting+config.Messages), asks: newGate(askWidth, askLimit),
	}
	s.rpc = rpc.NewServer(
		rpc.ForceServerCodecV2(newWire()),
		rpc.MaxRecvMsgSize(MaxMessageBytes), rpc.MaxSendMsgSize(MaxMessageBytes),
		rpc.MaxConcurrentStreams(maxStreams),
		// Fixed windows: with gRPC's own choice each stream that waits could hold 16 MiB.
		rpc.InitialWindowSize(streamWindowBytes), rpc.InitialConnWindowSize(connectionWindowBytes),
		// A client whose machine is gone is noticed, and its jobs cancelled; one that asks whether we live may do so.
		rpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 20 * time.Second}),
		rpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	)
	s.rpc.RegisterService(s.desc(), nil)
	return s, nil
}

func (s *Server) log(level, format string, args ...any) {
	if s.config.Log != nil {
		s.config.Log(level, fmt.Sprintf(format, args...))
	}
}

// Serve answers calls on a listener, which it closes, until ctx ends. Then it takes no more jobs, cancels those that it has,
// lets their callers know, and returns nil when the engine has let go of them. Errors: Internal where the listener fails.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	s.log("info", "serving cuzk.v1.ProvingEngine on %s, %d jobs may wait", listener.Addr(), s.config.Waiting)
	failed := make(chan error, 1)
	go func() {
		var err error
		defer func() { failed <- err }()
		defer status.Recover("grpc.Serve", &err)
		err = s.rpc.Serve(listener)
	}()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		s.log("info", "ending: %v", context.Cause(ctx))
	}
	left := s.shut()
	// Callers get their answers; who does not take them, or sends on, is cut off.
	hard := time.AfterFunc(endingTime, s.rpc.Stop)
	s.rpc.GracefulStop()
	hard.Stop()
	for _, j := range left {
		_, _ = j.Wait(context.Background()) // cancelled, and its callers know
	}
	if err != nil {
		return status.Wrap(status.Internal, "grpc.Serve", listener.Addr().String(), err)
	}
	return nil
}

// Listen opens an address: unix:///path or unix:path for a socket, host:port or tcp://host:port. A socket's folder is
// made; a socket that a server left behind is removed, one that a server answers on is not. Errors: Caller for an address
// of another form; Input for one that cannot be had.
func Listen(address string) (net.Listener, error) {
	const op = "grpc.Listen"
	path, isUnix := strings.CutPrefix(address, "unix://")
	if !isUnix {
		path, isUnix = strings.CutPrefix(address, "unix:")
	}
	if !isUnix {
		hostPort := strings.TrimPrefix(address, "tcp://")
		if _, _, err := net.SplitHostPort(hostPort); err != nil || strings.Contains(hostPort, "/") {
			return nil, status.New(status.Caller, op, "address", "unix:///path or host:port", fmt.Sprintf("%q", address))
		}
		listener, err := net.Listen("tcp", hostPort)
		if err != nil {
			return nil, status.Wrap(status.Input, op, address, err)
		}
		return listener, nil
	}
	if path == "" {
		return nil, status.New(status.Caller, op, "address", "the path of a socket", fmt.Sprintf("%q", address))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, status.Wrap(status.Input, op, path, err)
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, status.Wrap(status.Input, op, path, err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, status.New(status.Input, op, path, "a socket or nothing", "another kind of file")
	default:
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			c.Close()
			return nil, status.New(status.Input, op, path, "a socket without a server", "one that answers")
		}
		if err := os.Remove(path); err != nil {
			return nil, status.Wrap(status.Input, op, path, err)
		}
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, status.Wrap(status.Input, op, path, err)
	}
	return listener, nil
}

// Totals is how many proofs were made, and how many jobs ended in an error.
func (s *Server) Totals() (completed, failed uint64) {
	n := s.config.Engine.JobCounts()
	return n.Done, n.Failed
}
