// Package engine proves and verifies sectors: it owns the budget, the parameters, the programs and the
// scheduler, and wires the rooms below it. capi and bindings/cli are its only callers; they turn the
// environment into a Config, which the engine itself never reads.
package engine

import (
	"time"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// Config is fixed for the life of an Engine. The zero value is usable: limits come from the machine.
type Config struct {
	Threads   int   // CPU threads; 0: the affinity mask and cgroup limit
	HostBytes int64 // host memory budget; 0: the cgroup limit or the machine's memory
	Device    string
	// Log receives one line an event, without a newline; nil drops them. level is "error", "warn", "info" or "debug".
	Log func(level, text string)
}

// ParamSource says where parameters come from and what is accepted.
type ParamSource struct {
	Dir              string // directory with .params and .vk files
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

	Progress  func(Progress)                  // called from one goroutine at a time; may be nil
	Partition func(index int, proof [192]byte) // each verified partition, in order, as soon as it is there; may be nil
}

// Progress is one finished stage of a partition.
type Progress struct {
	Partition, Partitions int
	Stage                 string // "parse", "params", "expand", "evaluate", "quotient", "msm_h", ... "assemble", "verify"
	Elapsed               time.Duration
	Done                  float64 // share of the whole job, 0 to 1, by expected work
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
	Proof  []byte // 192 bytes a partition, in partition order
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
