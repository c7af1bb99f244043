// Package engine proves and verifies sectors: it owns the budget, the parameters, the programs and the
// scheduler, and wires the rooms below it. capi and bindings/cli (with bindings/grpc behind it) call it; they turn the
// environment into a Config, which the engine itself never reads.
package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/sched"
	"github.com/sealc2/sealc2/engine/status"
)

// Config is fixed for the life of an Engine. The zero value is usable: limits come from the machine.
type Config struct {
	Threads   int   // CPU threads; 0: the affinity mask and cgroup limit
	HostBytes int64 // host memory budget; 0: the cgroup limit or the machine's memory
	// Device is "cpu"; "cuda" for the GPU with most memory, "cuda:1" for that of a number, "cuda:0,2" for several, which share each
	// job's partitions, "cuda:all" for all that can be used; "auto" or empty: the GPU with most memory, else the CPU.
	Device      string
	DeviceBytes int64 // memory budget of each device; 0: what is free at the start, less some headroom
	// UrgentBytes is the part of each GPU's memory that is kept for proofs of the highest class, which then start beside what runs; 0: 1 GiB of
	// a budget of 20 GiB or more, else none; negative: none.
	UrgentBytes int64
	// Policy is the interlock rule by its name (sched.Policies), for comparing them: "reservation", which is meant for work, or empty, "single",
	// "two-lock", "split". DeviceWorkers and PartitionWorkers are the numbers of batches under way at once on a device, and of host stages
	// at once (gw and pw of the published designs); 0: what the policy and the plans say.
	Policy                          string
	DeviceWorkers, PartitionWorkers int
	// QueueBytes is the part of the host memory that holds the requests of submitted jobs; 0: there is none, and nothing can be
	// submitted. DefaultQueue is a 32nd, at most 512 MiB.
	QueueBytes int64
	// GPULock is a file by which several programs take turns on the machine's GPUs, each holding an exclusive flock of it: bellperson's
	// bellman.gpu.lock (GPULockFile). A job waits for it before it is parsed, jobs share it, and behind the last of them the devices' memory
	// is given back with it. Empty: the GPUs are used beside whatever runs there.
	GPULock string
	// Log receives one line an event, without a newline; nil drops them. level is "error", "warn", "info" or
	// "debug". It may be called from several goroutines at once.
	Log func(level, text string)

	gpus *gpus // nil: those of this machine
}

// ParamSource says where parameters come from and what is accepted.
type ParamSource struct {
	Dir              string // directory with .params and .vk files, or the path of one such file
	Origin           string // who chose Dir, for error text: "FIL_PROOFS_PARAMETER_CACHE", "--params"; may be empty
	AllowDev         bool   // accept keys that are not in the public manifest; each use is logged as a warning
	VerifyProduction bool   // hash the whole .params file against the manifest once per process and file
}

// SectorIDs are the ids that replica_id is made of.
type SectorIDs struct {
	SectorID uint64
	ProverID [32]byte // unsigned LEB128 of the miner's actor number, zero-filled
}

// ProveRequest is one sector to prove.
type ProveRequest struct {
	C1        []byte     // C1 JSON, bare form or lotus-bench wrapping; borrowed until Prove returns
	Statement []byte     // statement file, for the unregistered test sizes; nil where the C1 names its proof
	IDs       *SectorIDs // nil: replica_id is taken from the C1; else it is recomputed and compared first
	Params    ParamSource
	R, S      []fr.Element // one a partition, for deterministic proofs; nil: crypto/rand
	// OnChain asks for the proof that goes on chain: kinds that end in an aggregate of their partitions'
	// proofs (non-interactive PoRep) are then refused as Unsupported, after parsing and before proving.
	OnChain bool

	// Callbacks come from the goroutine of Prove, which waits for them; they must not call the engine.
	Progress  func(Progress)                   // each stage that succeeded; may be nil
	Partition func(index int, proof [192]byte) // each verified partition, in order, as soon as it is there; may be nil

	job *Job // that it is the request of; nil for a call of Prove
}

// Progress is one finished stage.
type Progress struct {
	Partition  int           // -1 for stages of the whole job
	Partitions int           // 0 where not known yet; known from the end of "parse"
	Stage      string        // "parse", "params", "check", "inputs", "expand", "evaluate", "quotient", "msm_h", ... "assemble", "verify"
	Start      time.Duration // since the job began
	Elapsed    time.Duration
	Done       float64 // share of the whole job, 0 to 1, by expected work
}

// StageTime is the time that one stage of one partition took. Partition is -1 for stages of the whole job.
type StageTime struct {
	Partition int
	Stage     string
	Start     time.Duration // since the job began
	Elapsed   time.Duration
}

// ProveResult is a verified proof.
type ProveResult struct {
	Proof  []byte          // 192 bytes a partition, in partition order
	Points []groth16.Proof // the same, decoded
	Stages []StageTime
	Device string
}

// VerifyRequest is a sector's claim in its registered form.
type VerifyRequest struct {
	RegisteredProof int32
	CommR, CommD    [32]byte
	IDs             SectorIDs
	Ticket, Seed    [32]byte
	Proof           []byte
	Params          ParamSource
}

// timelineLength is how many stages the timeline keeps: ten proofs of ten partitions and more.
const timelineLength = 4096

// Engine is one opened engine. All methods may be called from any number of goroutines; proofs queue up
// under the budget, by class, then in the order of their coming.
type Engine struct {
	config   Config
	limits   host.Limits
	budget   *host.Budget
	devices  []*device // at least one
	sched    *sched.Scheduler
	resident *residency
	jobs     *jobs
	tally    tally
	threads  threads
	gpuLock  *gpuLock // nil where GPUs are not shared by turns

	// ctx ends when Close is called; closing waits for calls, which grows only while open.
	ctx    context.Context
	cancel context.CancelFunc
	calls  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	stages []StageTime // of the job that finished last
}

// Open finds out what the machine allows, chooses the device, and is quick: no parameters are loaded yet. A GPU takes
// some tenths of a second. Errors: Caller for a negative limit; NoDevice, naming each device and why it is not used;
// NoMemory; Internal.
func Open(config Config) (e *Engine, err error) {
	const op = "engine.Open"
	defer status.Recover(op, &err)
	if sink := config.Log; sink != nil {
		config.Log = func(level, text string) { sink(level, oneLine(text)) }
	}
	limits, err := host.ThisMachine().Limits(config.Threads, config.HostBytes)
	if err != nil {
		return nil, err
	}
	queueBytes, err := queueOf(config.QueueBytes, limits.HostBytes)
	if err != nil {
		return nil, err
	}
	policy, err := sched.PolicyNamed(config.Policy)
	if err != nil {
		return nil, err
	}
	if config.DeviceWorkers < 0 || config.PartitionWorkers < 0 {
		return nil, status.New(status.Caller, op, "workers", "0 or more", fmt.Sprintf("%d on a device, %d for partitions", config.DeviceWorkers, config.PartitionWorkers))
	}
	devices, err := chooseDevices(&config, limits)
	if err != nil {
		return nil, err
	}
	ceiling := host.Needs{HostBytes: limits.HostBytes - queueBytes, Threads: limits.Threads}
	var slots []sched.Device
	for i, d := range append(slices.Clone(devices), urgentOf(devices)...) {
		d.memory = min(i, host.Memories-1) // the last ones are not told apart
		ceiling.DeviceBytes += d.bytes
		ceiling.Memory[d.memory] += d.bytes
		slots = append(slots, d)
	}
	e = &Engine{
		config:   config,
		limits:   limits,
		budget:   host.NewBudget(ceiling),
		devices:  devices,
		resident: newResidency(),
		jobs:     newJobs(queueBytes),
	}
	e.budget.SetAside(uint8(ClassWinning), urgentHost(ceiling.HostBytes))
	e.tally.opened = time.Now()
	e.sched = sched.NewWith(sched.Config{
		Budget: e.budget, Clock: sched.SystemClock{}, TimelineLength: timelineLength,
		Policy: policy, Workers: config.DeviceWorkers, PartitionWorkers: config.PartitionWorkers,
	}, slots...)
	e.ctx, e.cancel = context.WithCancel(context.Background())
	if err := e.shareGPUs(); err != nil {
		return nil, errors.Join(err, closeDevices(devices))
	}
	for _, d := range devices {
		e.log(d.level, "device %s (%s): %s; %s", d.name, d.why, limits, host.CPU())
	}
	return e, nil
}

// urgentHost is what is kept of the host memory for the highest class, so that it need not wait until a job that was admitted before is over: a
// sixteenth of 4 GiB or more, at most 1 GiB.
func urgentHost(bytes int64) int64 {
	if bytes < 4<<30 {
		return 0
	}
	return min(bytes/16, 1<<30)
}

// DefaultQueue lets the engine choose QueueBytes.
const DefaultQueue = -1

// queueOf is the part of the host memory that the queue takes.
func queueOf(wish, hostBytes int64) (int64, error) {
	switch {
	case wish == DefaultQueue:
		return min(hostBytes/32, 512<<20), nil
	case wish < 0 || wish >= hostBytes:
		return 0, status.New(status.Caller, "engine.Open", "QueueBytes", fmt.Sprintf("less than the host memory of %d bytes", hostBytes), fmt.Sprint(wish))
	}
	return wish, nil
}

// oneLine escapes what could end a line or steer a terminal: paths come from callers, and a log is read by others.
func oneLine(text string) string {
	if !strings.ContainsFunc(text, unicode.IsControl) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsControl(r) {
			fmt.Fprintf(&b, `\x%02x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// log hands one line to the configured sink.
func (e *Engine) log(level, format string, args ...any) {
	if e.config.Log != nil {
		e.config.Log(level, fmt.Sprintf(format, args...))
	}
}

// begin enters a call: the returned context ends with the caller's and with Close; the returned function
// leaves. Fails with Caller once Close has begun.
func (e *Engine) begin(ctx context.Context, op string) (context.Context, func(), error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, nil, status.New(status.Caller, op, "engine", "an open one", "one that was closed")
	}
	e.calls.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(e.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
		e.calls.Done()
	}, nil
}

// Close cancels what runs, waits for it, and gives everything back. Closing twice is legal. It must not be
// called from a callback of Prove, which it would wait for.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.cancel()
	e.calls.Wait()
	e.threads.close()
	return errors.Join(e.resident.close(), e.tally.nvml.close(), closeDevices(e.devices))
}

// Limits is what the engine may use, and what decided so.
func (e *Engine) Limits() host.Limits { return e.limits }

// Device names the devices that prove.
func (e *Engine) Device() string { return strings.Join(e.Devices(), ", ") }

// Devices are their names, one by one.
func (e *Engine) Devices() []string {
	names := make([]string, len(e.devices))
	for i, d := range e.devices {
		names[i] = d.name
	}
	return names
}

// Timeline is the latest stages of all jobs, in the order in which they ended.
func (e *Engine) Timeline() []sched.Entry { return e.sched.Timeline().Entries() }

// LastStages are the stage times of the proof that finished last; nil before the first one. The slice must
// not be written.
func (e *Engine) LastStages() []StageTime {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stages
}
