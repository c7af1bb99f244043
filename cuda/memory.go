package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// align is the alignment of every region: that of the widest loads, and a multiple of a memory transaction.
const align = 256

// cut deals out regions of a block of device memory, first its sizes and then, from a base, the same places.
type cut struct{ at int64 }

func (c *cut) take(bytes int64) (offset int64) {
	offset = c.at
	c.at = (c.at + bytes + align - 1) &^ (align - 1)
	return offset
}

// memory is a device's, up to a limit: blocks that partitions hold, blocks that wait for the next one, and
// what is resident. Used by the owner's lanes alone.
type memory struct {
	mu     sync.Mutex
	device *driver.Device
	limit  int64
	unit   int64 // of mapping
	used   int64
	idle   []*driver.Arena
	held   map[*driver.Arena]struct{} // by partitions
	stuck  []*driver.Arena            // could not be unmapped
	kept   shelf[*driver.Arena]
}

// resident is a block whose content outlives a partition.
type resident = kept[*driver.Arena]

// mapped is what a block of that size takes.
func (m *memory) mapped(bytes int64) int64 { return roundUp(bytes, m.unit) }

func roundUp(bytes, unit int64) int64 { return (bytes + unit - 1) / unit * unit }

// take, whose caller holds mu, maps a block of at least so many bytes (more than 0), or hands out an idle one of that size: a larger one would take
// what others have reserved. Idle blocks, and then residents that nobody has pinned, make room. Errors: NoMemory with both numbers; the driver's.
func (m *memory) take(bytes int64) (*driver.Arena, error) {
	size := m.mapped(bytes)
	if i := slices.IndexFunc(m.idle, func(a *driver.Arena) bool { return a.Size() == size }); i >= 0 {
		a := m.idle[i]
		m.idle = slices.Delete(m.idle, i, i+1)
		return a, nil
	}
	for m.used+size > m.limit {
		freed, err := m.makeRoom()
		if err != nil {
			return nil, err
		}
		if !freed {
			return nil, status.New(status.NoMemory, "cuda.memory", m.device.Name, host.FormatBytes(size), fmt.Sprintf("%s of %s, the rest in use", host.FormatBytes(m.limit-m.used), host.FormatBytes(m.limit)))
		}
	}
	for {
		a, err := m.device.MapArena(bytes)
		if err == nil {
			m.used += a.Size()
			return a, nil
		}
		// Other programs may have taken what the limit allows.
		if status.KindOf(err) != status.NoMemory {
			return nil, err
		}
		freed, failed := m.makeRoom()
		if failed != nil {
			return nil, err
		}
		if !freed {
			return nil, m.crowded(size, err)
		}
	}
}

// crowded adds to a refusal of the driver's what there is: others have what the limit allows.
func (m *memory) crowded(bytes int64, refusal error) error {
	free, total, err := m.device.Memory()
	if err != nil {
		return refusal
	}
	return &status.Error{Kind: status.NoMemory, Op: "cuda.memory", Where: m.device.Name, Want: host.FormatBytes(bytes),
		Got:   fmt.Sprintf("%s free of %s; %s of %s are in use here, other programs have the rest", host.FormatBytes(free), host.FormatBytes(total), host.FormatBytes(m.used), host.FormatBytes(m.limit)),
		Cause: refusal}
}

// hold takes a block for a partition.
func (m *memory) hold(bytes int64) (*driver.Arena, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, err := m.take(bytes)
	if err == nil {
		m.held[a] = struct{}{}
	}
	return a, err
}

// release takes a partition's block back for the next one that wants it. Nothing that is queued uses it.
func (m *memory) release(a *driver.Arena) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.held[a]; ok {
		delete(m.held, a)
		m.idle = append(m.idle, a)
	}
}

// makeRoom unmaps one block that nobody uses; false where there is none. The caller holds mu.
func (m *memory) makeRoom() (bool, error) {
	if len(m.idle) > 0 { // the largest
		a := slices.MaxFunc(m.idle, func(a, b *driver.Arena) int { return cmp.Compare(a.Size(), b.Size()) })
		m.idle = slices.Delete(m.idle, slices.Index(m.idle, a), slices.Index(m.idle, a)+1)
		return true, m.unmap(a)
	}
	r := m.kept.oldest()
	if r == nil {
		return false, nil
	}
	m.kept.remove(r)
	return true, m.unmap(r.block)
}

// unmap gives a block back. One that the driver does not take back stays on the list of those that close tries again.
func (m *memory) unmap(a *driver.Arena) error {
	err := a.Close()
	if err != nil {
		m.stuck = append(m.stuck, a)
		return err
	}
	m.used -= a.Size()
	return nil
}

// find pins what is resident and filled under a key; where nothing is but another batch fills it, that is over once the channel is closed.
func (m *memory) find(key any) (*resident, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept.find(key)
}

// keep makes a block of so many bytes resident, pinned. Whoever fills it calls fill, or drop.
func (m *memory) keep(key any, bytes int64) (*resident, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, err := m.take(bytes)
	if err != nil {
		return nil, err
	}
	return m.kept.put(key, a, a.Size()), nil
}

// drop unmaps what was to become resident. Nothing that is queued uses it.
func (m *memory) drop(r *resident) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept.remove(r) {
		return m.unmap(r.block)
	}
	return nil
}

// unpin lets go of a resident.
func (m *memory) unpin(r *resident) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.users--
}

// fill marks what a resident holds as complete.
func (m *memory) fill(r *resident, value any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.fill(value)
}

// evict unmaps what nobody uses: blocks that wait for the next partition, and residents for which gone says so.
func (m *memory) evict(gone func(key any) bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []error
	for _, a := range m.idle {
		all = append(all, m.unmap(a))
	}
	m.idle = nil
	for _, r := range slices.Clone(m.kept.all) {
		if r.users == 0 && gone(r.key) {
			m.kept.remove(r)
			all = append(all, m.unmap(r.block))
		}
	}
	return errors.Join(all...)
}

// close unmaps everything, blocks that partitions still hold included.
func (m *memory) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []error
	for _, r := range m.kept.all {
		all = append(all, r.block.Close())
	}
	for _, a := range slices.Concat(m.idle, m.stuck) {
		all = append(all, a.Close())
	}
	for a := range m.held {
		all = append(all, a.Close())
	}
	m.kept.all, m.idle, m.held, m.stuck, m.used = nil, nil, nil, nil, 0
	return errors.Join(all...)
}
