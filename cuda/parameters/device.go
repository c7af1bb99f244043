package parameters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/sealc2/sealc2/cuda/driver"
	"github.com/sealc2/sealc2/cuda/points"
	"github.com/sealc2/sealc2/cuda/setup"
	"github.com/sealc2/sealc2/engine/groth16"
	"github.com/sealc2/sealc2/engine/host"
	"github.com/sealc2/sealc2/engine/status"
)

// Config is fixed for the life of a Device.
type Config struct {
	API         *driver.API
	Images      [][]byte // of the kernels
	Index       int      // of the device
	MemoryBytes int64    // that may be taken of the device's memory; 0: what is free, less some headroom
	PinnedBytes int64    // host memory for copies, at least MinPinnedBytes; 0: MaxPinnedBytes
	Threads     int      // CPU threads that read files; at least 1
	WaitLimit   time.Duration
}

// The ring: slots of pinned memory, each for a piece of a block.
const (
	slotCount = 16
	// pieceUnit is a number of points that the pieces of a block are multiples of: CheckPoints tells apart runs of so many.
	pieceUnit = 4096
	slotUnit  = pieceUnit * 192 // of points of G2, and twice as many of G1

	// MinPinnedBytes makes slots of one unit, MaxPinnedBytes slots of which a copy takes 0.3 ms.
	MinPinnedBytes = slotCount * slotUnit
	MaxPinnedBytes = 256 << 20
)

// align is the alignment of every region of device memory.
const align = 256

// Device is a device for one job at a time, on the goroutine that calls.
type Device struct {
	device    *driver.Device
	library   *driver.Library
	compute   *driver.Stream
	copies    *driver.Stream
	ring      *driver.Pinned
	words     *driver.Pinned // fault words, a pair for each slot
	slotBytes int64
	events    []*driver.Event
	moved     [slotCount]*driver.Event // a slot's copy is over
	worked    [slotCount]*driver.Event // and so are the kernels on what it brought
	made      [2]*driver.Event         // Setup: a buffer's points are encoded
	copied    [2]*driver.Event         // and copied down
	points    *points.Points
	maker     *setup.Maker
	limit     int64
	threads   int
	stuck     bool // the device hangs
}

// Open opens a device and puts the kernels on it: some tenths of a second. Errors: NoDevice; NoMemory; else what the driver
// said.
func Open(config Config) (d *Device, err error) {
	const op = "parameters.Open"
	defer status.Recover(op, &err)
	if config.PinnedBytes == 0 {
		config.PinnedBytes = MaxPinnedBytes
	}
	if config.PinnedBytes < MinPinnedBytes || config.MemoryBytes < 0 {
		return nil, status.New(status.Caller, op, "memory", fmt.Sprintf("%d bytes or more of pinned memory, and 0 or more of the device's", MinPinnedBytes),
			fmt.Sprintf("%d and %d", config.PinnedBytes, config.MemoryBytes))
	}
	d = &Device{threads: max(1, config.Threads), slotBytes: min(config.PinnedBytes, MaxPinnedBytes) / slotCount / slotUnit * slotUnit}
	if d.device, err = config.API.Open(config.Index); err != nil {
		return nil, err
	}
	if err := d.device.In(func() error { return d.fill(&config) }); err != nil {
		_ = d.Close() // what is left says less than the error
		return nil, err
	}
	return d, nil
}

// headroom is the part of a device's free memory that is left to others when nobody configured a limit.
func headroom(free int64) int64 { return min(max(free/32, 128<<20), 2<<30) }

func (d *Device) fill(config *Config) (err error) {
	if config.WaitLimit > 0 {
		d.device.Limit = config.WaitLimit
	}
	if d.library, err = d.device.Load(config.Images...); err != nil {
		return err
	}
	if d.maker, err = setup.New(d.library.Kernel); err != nil {
		return err
	}
	if d.points, err = points.New(d.library.Kernel); err != nil {
		return err
	}
	if err = d.library.Warm(slices.Concat(d.maker.Kernels(), d.points.Kernels())...); err != nil {
		return err
	}
	if d.ring, err = d.device.NewPinned(slotCount*d.slotBytes, d.threads); err != nil {
		return err
	}
	if d.words, err = d.device.NewPinned(int64(unsafe.Sizeof([slotCount]faultWords{})), 1); err != nil {
		return err
	}
	for _, stream := range []struct {
		name string
		into **driver.Stream
	}{{"compute", &d.compute}, {"copies", &d.copies}} {
		if *stream.into, err = d.device.NewStream(stream.name, driver.Normal); err != nil {
			return err
		}
	}
	for _, all := range [][]*driver.Event{d.moved[:], d.worked[:], d.made[:], d.copied[:]} {
		for i := range all {
			if all[i], err = d.device.NewEvent(false); err != nil {
				return err
			}
			d.events = append(d.events, all[i])
		}
	}
	if d.limit = config.MemoryBytes; d.limit == 0 {
		free, _, err := d.device.Memory()
		if err != nil {
			return err
		}
		d.limit = free - headroom(free)
	}
	return nil
}

// Name is the device's, as "cuda:0 NVIDIA H200".
func (d *Device) Name() string { return fmt.Sprintf("cuda:%d %s", d.device.Index, d.device.Name) }

// slot is the memory of a slot.
func (d *Device) slot(i int) []byte { return d.ring.Bytes()[int64(i)*d.slotBytes:][:d.slotBytes] }

// pieceOf is how many points of a group a slot holds.
func (d *Device) pieceOf(g points.Group) int { return int(d.slotBytes / g.PointBytes()) }

// in runs a part of a job on the device. After an error it waits until nothing is queued, so that memory can be given back.
func (d *Device) in(op string, run func() error) error {
	if d.stuck {
		return status.New(status.NoDevice, op, d.device.Name, "a device that answers", "one that hangs")
	}
	return d.device.In(func() error {
		err := func() (err error) {
			defer status.Recover(op, &err)
			return run()
		}()
		if err == nil {
			return nil
		}
		// A failure of the wait is one of the same device, and comes after the error.
		if waited := d.drain(); status.KindOf(waited) == status.Timeout {
			d.stuck = true
		}
		return err
	})
}

// drain waits until nothing is queued.
func (d *Device) drain() error {
	var all []error
	for _, s := range []*driver.Stream{d.copies, d.compute} {
		if s != nil {
			all = append(all, s.Synchronize(context.Background()))
		}
	}
	return errors.Join(all...)
}

// take maps device memory for a job. Errors: NoMemory with both numbers; the driver's.
func (d *Device) take(op, what string, bytes int64) (*driver.Arena, error) {
	if bytes > d.limit {
		return nil, status.New(status.NoMemory, op, fmt.Sprintf("%s: device memory for %s", d.device.Name, what), host.FormatBytes(bytes), host.FormatBytes(d.limit)+" that may be taken")
	}
	return d.device.MapArena(bytes)
}

// release gives a job's memory back. That of a device that hangs stays where it is.
func (d *Device) release(a *driver.Arena) error {
	if a == nil || d.stuck {
		return nil
	}
	return d.twice(a.Close)
}

// twice gives something back on the device, and once more what the driver did not take the first time.
func (d *Device) twice(give func() error) error {
	if d.device.In(give) == nil {
		return nil
	}
	return d.device.In(give)
}

// Close gives the device back, once no job is under way. It goes on after errors and returns them all. Closing twice is
// legal.
func (d *Device) Close() (err error) {
	defer status.Recover("parameters.Close", &err)
	if d.stuck {
		return nil
	}
	err = d.twice(func() error {
		var all []error
		for _, e := range d.events {
			all = append(all, e.Close())
		}
		for _, s := range []*driver.Stream{d.copies, d.compute} {
			if s != nil {
				all = append(all, s.Close())
			}
		}
		for _, p := range []*driver.Pinned{d.ring, d.words} {
			if p != nil {
				all = append(all, p.Close())
			}
		}
		if d.library != nil {
			all = append(all, d.library.Close())
		}
		return errors.Join(all...)
	})
	return errors.Join(err, d.device.Close())
}

// place is where a point stands among the blocks of one group, one after the other.
func place(srs interface{ Len(groth16.Block) int }, blocks []groth16.Block, index uint64) (b groth16.Block, i int) {
	left := int(index)
	for _, b := range blocks {
		if n := srs.Len(b); left < n {
			return b, left
		} else {
			left -= n
		}
	}
	return groth16.BlockCount, left
}
