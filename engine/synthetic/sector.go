package synthetic

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/sealc2/sealc2/engine/c1"
	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/status"
)

// Options say which sector to make.
type Options struct {
	Shape   *porep.Shape
	Version porep.APIVersion // V1_0 or V1_1: the plain V1 and V1_1 registered proofs
	Seed    uint64           // everything else follows from it
	// Partitions is how many partitions the output holds, from the first on; 0: all. The sector is the same:
	// all its challenges are in its commitments. Fewer than all is not a C1 output that anybody proves.
	Partitions int
	Threads    int // goroutines; below 1 is 1
}

// Sector is a synthetic sector.
type Sector struct {
	Name             string // "synthetic-2k-1.1.0-7"
	Output           *c1.Output
	IDs              c1.IDs
	Actor            uint64 // the miner's number, which the prover id spells
	CommC, CommRLast porep.Hash
	Challenges       [][]uint32 // of all partitions, also those that Output leaves out
}

// Complete says whether Output holds all partitions.
func (s *Sector) Complete() bool { return len(s.Output.Partitions) == len(s.Challenges) }

// firstActor is the lowest number of a miner's actor; those below are the network's own.
const firstActor = 1000

// Make makes a sector. It takes 17 MB for a 32 GiB sector, a quarter of that while it is made. Fails with
// Caller for options out of range, Unsupported for versions whose challenges would be circular, Cancelled.
func Make(ctx context.Context, o Options) (sector *Sector, err error) {
	defer status.Recover(op, &err)
	if o.Shape == nil {
		return nil, status.New(status.Caller, op, "shape", "a sector size", "none")
	}
	if o.Version > porep.V1_1 {
		return nil, status.New(status.Unsupported, op, "version",
			"1.0.0 or 1.1.0: later challenges depend on comm_r, which depends on them", o.Version.String())
	}
	if o.Partitions < 0 || o.Partitions > o.Shape.Partitions {
		return nil, status.New(status.Caller, op, "partitions", fmt.Sprintf("0 to %d", o.Shape.Partitions), fmt.Sprint(o.Partitions))
	}
	if o.Partitions == 0 {
		o.Partitions = o.Shape.Partitions
	}

	free := newSource(o.Shape, o.Version, o.Seed)
	data := newZeroData(o.Shape)
	s := &Sector{Name: name(&o), Actor: firstActor + free.number("actor")}
	s.IDs.SectorID = free.number("sector_id")
	binary.PutUvarint(s.IDs.ProverID[:], s.Actor)
	s.Output = &c1.Output{IDs: &s.IDs}
	st := &s.Output.Statement
	*st = porep.Statement{
		Shape: o.Shape, Version: o.Version, Kind: porep.Interactive, Registered: registered(o.Shape, o.Version),
		CommD: data.root(), Ticket: free.hash("ticket"), Seed: free.hash("seed"),
	}
	if st.Registered != nil {
		st.PorepID = st.Registered.PorepID()
	} else {
		st.PorepID, s.Output.Bare = testPorepID(o.Shape, o.Version), true
	}
	st.ReplicaID = st.RecomputeReplicaID(s.IDs.SectorID, s.IDs.ProverID)
	for k := range st.PartitionCount() {
		challenges, err := st.Challenges(k)
		if err != nil {
			return nil, err
		}
		s.Challenges = append(s.Challenges, challenges)
	}

	opened := newColumns(st, s.Challenges, free)
	leaves, err := opened.leaves(ctx, o.Threads)
	if err != nil {
		return nil, err
	}
	columnTree, err := buildTree(ctx, o.Shape, "comm_c", free, leaves, o.Threads)
	if err != nil {
		return nil, err
	}
	replicaTree, err := buildTree(ctx, o.Shape, "comm_r_last", free, opened.replica(), o.Threads)
	if err != nil {
		return nil, err
	}
	s.CommC, s.CommRLast = columnTree.root(), replicaTree.root()
	if st.CommR, err = porep.CommR(s.CommC, s.CommRLast); err != nil {
		return nil, err
	}
	if err := st.Validate(); err != nil {
		return nil, err
	}

	perPartition := o.Shape.ChallengesPerPartition
	s.Output.Partitions = make([][]porep.Challenge, o.Partitions)
	for k := range s.Output.Partitions {
		s.Output.Partitions[k] = make([]porep.Challenge, perPartition)
	}
	w := &opener{opened, data, columnTree, replicaTree}
	err = parallel(ctx, o.Partitions*perPartition, o.Threads, func(i int) {
		k, j := i/perPartition, i%perPartition
		s.Output.Partitions[k][j] = w.challenge(s.Challenges[k][j])
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// name names a sector after its options.
func name(o *Options) string {
	const prefix = len("porep-")
	return fmt.Sprintf("synthetic-%s-%s-%d", o.Shape.OracleName[prefix:], o.Version, o.Seed)
}

// registered is the interactive proof of a size and version; nil for the unregistered sizes.
func registered(shape *porep.Shape, version porep.APIVersion) *porep.RegisteredProof {
	for _, r := range porep.RegisteredProofs() {
		if r.Shape == shape && r.Version == version && r.Kind == porep.Interactive {
			return r
		}
	}
	return nil
}

// opener writes vanilla proofs.
type opener struct {
	opened               *columns
	data                 zeroData
	columnTree, replicas *tree
}

func (w *opener) challenge(node uint32) porep.Challenge {
	c := porep.Challenge{
		CommD:     w.data.path(node),
		CommRLast: w.replicas.path(node),
		Column:    w.column(node),
	}
	for i, parent := range w.opened.parents[node] {
		if i < porep.DRGDegree {
			c.DRG = append(c.DRG, w.column(parent))
		} else {
			c.Expander = append(c.Expander, w.column(parent))
		}
	}
	for layer := 1; layer <= w.opened.layers; layer++ {
		c.Labeling = append(c.Labeling, w.opened.labeling(node, layer))
	}
	c.Encoding = w.opened.labeling(node, w.opened.layers) // its key is the last label
	return c
}

func (w *opener) column(node uint32) porep.ColumnProof {
	return porep.ColumnProof{Index: node, Rows: w.opened.rows(node), Inclusion: w.columnTree.path(node)}
}
