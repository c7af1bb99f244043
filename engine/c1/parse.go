package c1

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

const op = "c1.Parse"

// Options are what a caller knows besides the C1 output.
type Options struct {
	// Statement is a statement file (see ParseStatement). The bare form needs one; with the tagged form it
	// must agree. Its ids are used where IDs is nil.
	Statement []byte
	// IDs are the sector and the prover. With them the replica id is recomputed, before the vanilla proofs are
	// looked at, and a C1 output of another sector is refused; nil: it is taken from the C1 output.
	IDs *IDs
	// AllowPartial takes a document with only the first partitions of a sector, at least one: good for looking
	// at witnesses, not for proving a sector.
	AllowPartial bool
	// StatementOnly leaves the vanilla proofs unread, and the Output without partitions: good for judging a job before it is queued.
	StatementOnly bool
	// Threads is how many threads ParseContext may use, see host.Do; 0 and 1: the caller's.
	Threads int
}

// Output is a C1 output.
type Output struct {
	Statement    porep.Statement
	Partitions   [][]porep.Challenge // PartitionCount (with AllowPartial fewer) x ChallengesPerPartition; a partition owns its memory, so that it can be dropped
	Bare         bool                // the form without registered_proof
	SectorNumber *uint64             // SectorNum of the lotus-bench wrapper; nil without it
	IDs          *IDs                // the ids that replica_id was recomputed from; nil: it stands as the C1 output gave it
}

// Parse reads a C1 output in any of the forms of the package comment. data is borrowed until Parse returns
// and not written. The result takes about a third of the JSON's size, and the wrapper another three quarters
// of its own while it is unpacked.
//
// Errors are of kind Input and name the JSON path, what was wanted and what was found, with the byte offset
// where one place is to blame (in a wrapped document, the offset in the unpacked one); of kind Caller
// where the options contradict each other; of kind Unsupported or Input for a bad statement file.
func Parse(data []byte, opts Options) (*Output, error) {
	return ParseContext(context.Background(), data, opts)
}

// ParseContext is Parse on up to opts.Threads threads, those of ctx's pool where it has one (see host.Do): partitions are
// read side by side. The result and the errors are those of one thread; besides, it fails with Cancelled.
func ParseContext(ctx context.Context, data []byte, opts Options) (out *Output, err error) {
	defer status.Recover(op, &err)
	file := (*StatementFile)(nil)
	ids := opts.IDs
	if opts.Statement != nil {
		if file, err = ParseStatement(opts.Statement); err != nil {
			return nil, err
		}
		if file.IDs != nil && ids != nil && *file.IDs != *ids {
			return nil, status.New(status.Caller, op, "sector_id, prover_id of the statement file",
				"the ids that were given: "+ids.String(), file.IDs.String())
		}
		if ids == nil {
			ids = file.IDs
		}
	}

	if ids != nil {
		ids = &IDs{ids.SectorID, ids.ProverID} // the caller's stays the caller's
	}

	p := &parser{reader: reader{data: data}, ctx: ctx, threads: max(1, opts.Threads), file: file, ids: ids, partial: opts.AllowPartial, brief: opts.StatementOnly}
	f := p.envelope()
	if f == nil && p.has(phase1Out) && !p.has(vanillaProofs) {
		return p.unwrap()
	}
	if f != nil {
		return nil, f.err(op, "the C1 output")
	}
	return p.document()
}

// String shows the ids as they enter errors.
func (i *IDs) String() string { return fmt.Sprintf("sector %d of prover %x", i.SectorID, i.ProverID) }

// Places of the top-level keys.
const (
	registeredProof = iota
	vanillaProofs
	commR
	commD
	replicaID
	seed
	ticket
	sectorNum // from here: the wrapper's
	phase1Out
	sectorSize
	topKeys
)

// topMembers are the keys of a C1 output and of the wrapper. Which must be there depends on the form.
var topMembers = &members{keys: []string{
	registeredProof: "registered_proof",
	vanillaProofs:   "vanilla_proofs",
	commR:           "comm_r",
	commD:           "comm_d",
	replicaID:       "replica_id",
	seed:            "seed",
	ticket:          "ticket",
	sectorNum:       "SectorNum",
	phase1Out:       "Phase1Out",
	sectorSize:      "SectorSize",
}}

// parser reads one document in two steps: first where the top-level values are, since keys may come in any
// order; then the values in the order in which they explain each other.
type parser struct {
	reader
	ctx     context.Context
	threads int            // at least 1
	file    *StatementFile // nil without
	ids     *IDs           // nil without
	partial bool           // Options.AllowPartial
	brief   bool           // Options.StatementOnly
	values  [topKeys]span  // empty where the key is not there
	inner   inner          // of the vanilla proofs
	size    *uint64        // SectorSize of the wrapper that the document came in
	number  *uint64        // SectorNum of it
	prefix  string         // path of the document in its wrapper
}

func (p *parser) has(place int) bool { return p.values[place].end > 0 }

// envelope finds the top-level values. Only the two large ones are passed over unchecked; whoever reads
// them ends at the same byte or fails.
func (p *parser) envelope() *fault {
	f := p.object(topMembers, func(place int) (f *fault) {
		switch place {
		case vanillaProofs:
			p.values[place], f = p.leap(&p.inner)
			return f
		case phase1Out:
			p.values[place], f = p.leap(nil)
			return f
		}
		p.peek()
		start := p.pos
		f = p.skip(maxDepth)
		p.values[place] = span{start, p.pos}
		return f
	})
	if f == nil {
		f = p.end()
	}
	return f
}

// value reads the value of a top-level key.
func (p *parser) value(place int, read func() *fault) *fault {
	at := p.values[place]
	if at.end == 0 {
		return (&fault{want: "the key", got: "none in the document", offset: -1}).key(topMembers.keys[place])
	}
	p.pos = at.start
	f := read()
	if f == nil && p.pos != at.end {
		f = p.unexpected("the end of the value")
	}
	return f.key(topMembers.keys[place])
}

// fail makes the Error of a fault in the document.
func (p *parser) fail(f *fault) error {
	if p.prefix != "" {
		f.key(p.prefix)
	}
	return f.err(op, "the C1 output")
}

// unwrap reads the document in a lotus-bench wrapper.
func (p *parser) unwrap() (*Output, error) {
	inner := &parser{ctx: p.ctx, threads: p.threads, file: p.file, ids: p.ids, partial: p.partial, brief: p.brief, prefix: topMembers.keys[phase1Out]}
	number := func(place int, limit uint64, dst **uint64) *fault {
		if !p.has(place) {
			return nil
		}
		return p.value(place, func() *fault {
			v, f := p.uint(limit)
			*dst = &v
			return f
		})
	}
	f := number(sectorNum, math.MaxInt64, &inner.number)
	if f == nil {
		f = number(sectorSize, math.MaxUint64, &inner.size)
	}
	if f == nil && inner.number != nil && p.ids != nil && *inner.number != p.ids.SectorID {
		f = unequal(p.ids.SectorID, *inner.number, "the sector id that was given").key(topMembers.keys[sectorNum])
	}
	if f != nil {
		return nil, p.fail(f)
	}

	var arena *host.Arena
	f = p.value(phase1Out, func() *fault {
		const want = "a string in standard base64"
		if p.peek() != '"' {
			return p.unexpected(want)
		}
		at := p.pos
		end := p.values[phase1Out].end
		text := p.data[at+1 : end-1]
		p.pos = end
		var err error
		// Escapes, and line ends, which base64 would not mind; the usual document has none of them.
		if bytes.IndexByte(text, '\\') >= 0 || bytes.IndexByte(text, '\r') >= 0 || bytes.IndexByte(text, '\n') >= 0 {
			if text, err = jsontext.AppendUnquote(nil, p.data[at:end]); err != nil {
				return &fault{want: want, got: err.Error(), offset: at}
			}
		}
		size := base64.StdEncoding.DecodedLen(len(text))
		if arena, err = host.NewArena(host.SliceBytes[byte](size)); err != nil {
			return &fault{want: "memory to unpack it", got: err.Error(), offset: at}
		}
		raw := host.Alloc[byte](arena, size)
		n, err := unpack(raw, text)
		if err != nil {
			return &fault{want: want, got: err.Error(), offset: at}
		}
		inner.data = raw[:n]
		return nil
	})
	if arena != nil {
		defer arena.Close()
	}
	if f == nil {
		f = inner.envelope()
		if f != nil {
			return nil, inner.fail(f)
		}
		return inner.document()
	}
	return nil, p.fail(f)
}

// unpack decodes standard base64, of which dst has room for all, and fails as encoding/base64 does.
func unpack(dst, text []byte) (n int, err error) {
	blocks := len(text) / blockBytes
	if wideText && blocks > 0 {
		blocks = unpackBlocks(&dst[0], &text[0], blocks)
	} else {
		blocks = 0
	}
	done, rest := blocks*(blockBytes/4*3), blocks*blockBytes
	n, err = base64.StdEncoding.Strict().Decode(dst[done:], text[rest:])
	var corrupt base64.CorruptInputError
	if errors.As(err, &corrupt) {
		err = corrupt + base64.CorruptInputError(rest)
	}
	return done + n, err
}

// document reads a C1 output of the tagged or the bare form.
func (p *parser) document() (*Output, error) {
	out := &Output{SectorNumber: p.number, IDs: p.ids}
	s := &out.Statement
	if f := p.form(out); f != nil {
		return nil, p.fail(f)
	}
	if p.size != nil && *p.size != s.Shape.SectorBytes {
		return nil, unequal(s.Shape.SectorBytes, *p.size, "the size of "+s.Shape.Name+" sectors").
			key(topMembers.keys[sectorSize]).err(op, "")
	}
	if f := p.publicParts(s); f != nil {
		return nil, p.fail(f)
	}
	if p.ids != nil {
		if f := p.sameReplica(s); f != nil {
			return nil, p.fail(f)
		}
	}
	if p.file != nil {
		if f := p.samePublic(s); f != nil {
			return nil, p.fail(f)
		}
	}
	if err := s.Validate(); err != nil {
		return nil, status.Wrap(status.KindOf(err), op, p.prefix, err)
	}
	if p.brief {
		return out, nil
	}

	layout := newLayout(s.Shape, s.Kind)
	var err error // of the machine, not of the document
	f := p.value(vanillaProofs, func() *fault {
		read := func() (f *fault) {
			if out.Partitions, f, err = p.readPartitions(layout); f == nil && err == nil {
				f, err = p.consistent(layout, out.Partitions, s)
			}
			return f
		}
		if out.Bare {
			return read()
		}
		return p.variant(s.Registered.Tag, "registered_proof is "+s.Registered.Name, read)
	})
	if err != nil {
		return nil, err
	}
	if f != nil {
		return nil, p.fail(f)
	}
	return out, nil
}

// form settles the form and what kind of sector it is.
func (p *parser) form(out *Output) *fault {
	s := &out.Statement
	if !p.has(vanillaProofs) {
		return p.value(vanillaProofs, nil)
	}
	start := p.values[vanillaProofs].start
	if !p.has(registeredProof) && p.data[start] != '{' {
		if p.data[start] != '[' {
			p.pos = start
			return p.unexpected("an object, or an array in the bare form").key(topMembers.keys[vanillaProofs])
		}
		if p.file == nil {
			return (&fault{want: "the member that names the sector size", got: "an array: this is the bare form, which needs a statement file",
				offset: start}).key(topMembers.keys[vanillaProofs])
		}
		out.Bare = true
		s.Shape, s.Registered, s.Version, s.Kind, s.PorepID =
			p.file.Shape, p.file.Registered, p.file.Version, p.file.Kind, p.file.PorepID
		return nil
	}
	f := p.value(registeredProof, func() (f *fault) {
		s.Registered, f = p.registered()
		return f
	})
	if f != nil {
		return f
	}
	s.Shape, s.Version, s.Kind, s.PorepID = s.Registered.Shape, s.Registered.Version, s.Registered.Kind, s.Registered.PorepID()
	if p.file == nil {
		return nil
	}
	var key string
	switch {
	case p.file.Registered != nil && p.file.Registered != s.Registered:
		key = "registered_seal_proof"
	case p.file.Shape != s.Shape:
		key = "sector_size"
	case p.file.Version != s.Version:
		key = "api_version"
	case p.file.Kind != s.Kind:
		key = "api_features"
	case p.file.PorepID != s.PorepID:
		key = "porep_id"
	default:
		return nil
	}
	return (&fault{want: "a proof with the " + key + " of the statement file", got: s.Registered.Name,
		offset: p.values[registeredProof].start}).key(topMembers.keys[registeredProof])
}

// publicParts reads the hashes of the statement and refuses what the reference refuses before it proves.
func (p *parser) publicParts(s *porep.Statement) *fault {
	for _, part := range []struct {
		place   int
		dst     *porep.Hash
		element bool   // must be a canonical field element
		nonzero string // what it is that must not be zero; empty: it may
	}{
		{commR, &s.CommR, true, "a commitment"},
		{commD, &s.CommD, true, "a commitment"},
		{replicaID, &s.ReplicaID, true, ""},
		{seed, &s.Seed, false, "a challenge seed"}, // also where the seed is not used, as the reference does
		{ticket, &s.Ticket, false, ""},
	} {
		f := p.value(part.place, func() *fault {
			at := p.pos
			read := p.hash
			if part.element {
				read = p.element
			}
			f := read(part.dst)
			if f == nil && part.nonzero != "" && *part.dst == (porep.Hash{}) {
				f = &fault{want: part.nonzero + " that is not zero", got: "32 zero bytes", offset: at}
			}
			return f
		})
		if f != nil {
			return f
		}
	}
	return nil
}

// sameReplica recomputes the replica id and refuses another one. Four of its five ingredients may be to
// blame; where another registered proof of the same size would explain the id, the error says so.
func (p *parser) sameReplica(s *porep.Statement) *fault {
	want := s.RecomputeReplicaID(p.ids.SectorID, p.ids.ProverID)
	if want == s.ReplicaID {
		return nil
	}
	hint := "one of sector_id, prover_id, ticket, comm_d or porep_id is of another sector"
	for _, r := range porep.RegisteredProofs() {
		if r.Shape == s.Shape && porep.ReplicaID(p.ids.ProverID, p.ids.SectorID, s.Ticket, s.CommD, r.PorepID()) == s.ReplicaID {
			hint = "registered_proof is wrong, the id is that of " + r.Name
		}
	}
	return (&fault{
		want:   fmt.Sprintf("%x, which follows for %s", want[:], p.ids),
		got:    fmt.Sprintf("%x: %s;", s.ReplicaID[:], hint),
		offset: p.values[replicaID].start,
	}).key(topMembers.keys[replicaID])
}

// samePublic refuses public parts that are not those of the statement file, where it has them.
func (p *parser) samePublic(s *porep.Statement) *fault {
	for i, got := range [len(publicKeys)]*porep.Hash{&s.CommR, &s.CommD, &s.ReplicaID, &s.Seed, &s.Ticket} {
		want := p.file.Public[i]
		if want == nil || *want == *got {
			continue
		}
		return (&fault{
			want: fmt.Sprintf("%x, that of the statement file", want[:]), got: fmt.Sprintf("%x", got[:]),
			offset: p.values[commR+i].start,
		}).key(publicKeys[i])
	}
	return nil
}
