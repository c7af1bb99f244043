package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/sealc2/sealc2/engine/circuit/porep"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/params"
	"github.com/sealc2/sealc2/engine/status"
)

// residency keeps parameter sets and verifying keys that were used: open files, decoded keys, pairings
// worked out. Each is kept by the identity of its files, so a replaced file is read anew. Whether a key may be
// used is asked at every use, since callers differ in what they allow.
type residency struct {
	verdicts *params.Verdicts

	mu     sync.Mutex
	sets   []*residentSet // by last use, latest first
	keys   []*residentKey // by last use, latest first
	closed bool
}

// idleLimit is how many sets (each an open file) and keys are kept for a next use.
const idleLimit = 8

// residentSet is an open .params file with its key. One that was opened without a .vk file beside it has no
// set.VK.
type residentSet struct {
	set   params.Set
	vk    params.Identity // of the .vk file
	file  *params.File
	key   *groth16.PreparedKey
	users int
	gone  bool // no longer in the list: the last user closes it
}

// residentKey is a .vk file.
type residentKey struct {
	path     string
	identity params.Identity
	bytes    []byte
	key      *groth16.PreparedKey
}

func newResidency() *residency { return &residency{verdicts: params.NewVerdicts("")} }

// policy is what the guard needs to know.
func (e *Engine) policy(source ParamSource) params.Policy {
	return params.Policy{AllowDev: source.AllowDev, VerifyProduction: source.VerifyProduction, Verdicts: e.resident.verdicts, Log: e.config.Log}
}

// findSet resolves a source for a shape. Proving needs both files, verifying only the key.
func findSet(source ParamSource, shape *porep.Shape, proving bool) (params.Set, error) {
	if source.Dir == "" {
		return params.Set{}, status.New(status.Caller, "engine.Params", "directory of parameters", "a path", "none")
	}
	info, err := os.Stat(source.Dir)
	if ext := filepath.Ext(source.Dir); err == nil && !info.IsDir() || err != nil && (ext == params.ParamsExt || ext == params.VKExt) {
		return params.SetAt(source.Dir, source.Origin)
	}
	find := params.FindKey
	if proving {
		find = params.Find
	}
	return find(params.Dir{Path: source.Dir, Origin: source.Origin}, shape.Name, shape.ParamsBaseName())
}

// identityAt is the identity of the file that a path leads to; false where there is none, so that whoever
// opens it then says what is wrong.
func identityAt(path string) (params.Identity, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return params.Identity{}, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return params.Identity{}, false
	}
	return params.Identity{Device: st.Dev, Inode: st.Ino, Size: st.Size, MtimeNs: st.Mtim.Nano(), CtimeNs: st.Ctim.Nano()}, true
}

// useSet returns the parameter set of a shape, ready for proving, and the function that ends the use.
func (e *Engine) useSet(ctx context.Context, source ParamSource, shape *porep.Shape) (*residentSet, func(), error) {
	set, err := findSet(source, shape, true)
	if err != nil {
		return nil, nil, err
	}
	policy := e.policy(source)
	if s := e.resident.takeSet(set); s != nil {
		done := func() { e.resident.putSet(s) }
		if err := s.admit(ctx, set.Base, policy); err != nil {
			done()
			return nil, nil, err
		}
		return s, done, nil
	}
	vk, _ := identityAt(set.VK)
	file, err := params.Load(ctx, set, policy)
	if err != nil {
		return nil, nil, err
	}
	key, err := groth16.Prepare(file.VerifyingKey())
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	s := &residentSet{set: set, vk: vk, file: file, key: key, users: 1}
	e.resident.addSet(s)
	return s, func() { e.resident.putSet(s) }, nil
}

// admit asks the guard for one use of the set; base is the circuit that it is used for, "" where that is not known.
func (s *residentSet) admit(ctx context.Context, base string, policy params.Policy) error {
	entry, _, err := params.Admit(s.file.KeyBytes(), s.set.Params, base, policy)
	if err == nil && policy.VerifyProduction {
		err = s.file.VerifyProduction(ctx, entry, policy.Verdicts)
	}
	return err
}

// takeSet finds a set whose files are still those that were opened. One that changed is forgotten. Where no
// .vk file is asked for, one that has it will do.
func (r *residency) takeSet(set params.Set) *residentSet {
	p, okP := identityAt(set.Params)
	v, okV := params.Identity{}, true
	if set.VK != "" {
		v, okV = identityAt(set.VK)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, s := range r.sets {
		if s.set.Params != set.Params || set.VK != "" && s.set.VK != set.VK {
			continue
		}
		if okP && okV && s.file.Identity() == p && (set.VK == "" || s.vk == v) {
			copy(r.sets[1:i+1], r.sets[:i])
			r.sets[0] = s
			s.users++
			return s
		}
		r.forget(i)
		return nil
	}
	return nil
}

func (r *residency) addSet(s *residentSet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		s.gone = true
		return
	}
	for i, other := range r.sets {
		if other.set.Params == s.set.Params && other.set.VK == s.set.VK { // two first users at once: the later one stays
			r.forget(i)
			break
		}
	}
	r.sets = append([]*residentSet{s}, r.sets...)
	for i := len(r.sets) - 1; i > 0 && len(r.sets) > idleLimit; i-- {
		if r.sets[i].users == 0 {
			r.forget(i)
		}
	}
}

// forget takes a set out of the list and closes it where nobody uses it; the caller holds mu.
func (r *residency) forget(i int) {
	s := r.sets[i]
	r.sets = append(r.sets[:i], r.sets[i+1:]...)
	s.gone = true
	if s.users == 0 {
		_ = s.file.Close() // read-only: there is nothing to lose
	}
}

func (r *residency) putSet(s *residentSet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.users--
	if s.gone && s.users == 0 {
		_ = s.file.Close()
	}
}

// useKey returns the verifying key of a shape, of which only the .vk file is needed, and that file's path.
func (e *Engine) useKey(source ParamSource, shape *porep.Shape) (key *groth16.PreparedKey, path string, err error) {
	set, err := findSet(source, shape, false)
	if err != nil {
		return nil, "", err
	}
	policy := e.policy(source)
	k := e.resident.findKey(set.VK)
	if k == nil {
		identity, _ := identityAt(set.VK)
		file, err := params.ReadKeyFile(set.VK)
		if err != nil {
			return nil, "", err
		}
		prepared, err := groth16.Prepare(file.VK)
		if err != nil {
			return nil, "", err
		}
		k = &residentKey{path: set.VK, identity: identity, bytes: file.Bytes, key: prepared}
		e.resident.addKey(k)
	}
	if _, _, err := params.Admit(k.bytes, set.VK, set.Base, policy); err != nil {
		return nil, "", err
	}
	return k.key, set.VK, nil
}

func (r *residency) findKey(path string) *residentKey {
	identity, ok := identityAt(path)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, k := range r.keys {
		if k.path != path {
			continue
		}
		if ok && k.identity == identity {
			copy(r.keys[1:i+1], r.keys[:i])
			r.keys[0] = k
			return k
		}
		r.keys = append(r.keys[:i], r.keys[i+1:]...)
		return nil
	}
	return nil
}

func (r *residency) addKey(k *residentKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys = append([]*residentKey{k}, r.keys...)
	r.keys = r.keys[:min(len(r.keys), idleLimit)]
}

// close forgets everything; sets in use are closed by their last user.
func (r *residency) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for len(r.sets) > 0 {
		r.forget(len(r.sets) - 1)
	}
	r.keys = nil
	return nil
}
