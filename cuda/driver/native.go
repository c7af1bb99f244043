package driver

import (
	"github.com/ebitengine/purego"

	"github.com/sealc2/sealc2/engine/status"
)

// native is the table over the driver's library: an address for each entry.
type native struct {
	name    string
	address [EntryCount]uintptr
}

// openLibrary opens a library and looks every entry up. What it lacks is 0; New says so.
func openLibrary(name string) (*native, error) {
	handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, status.New(status.NoDevice, "driver.Load", "", "an NVIDIA driver", "none: "+err.Error())
	}
	// Never closed: a driver's threads do not survive that.
	return &native{name: name, address: lookUp(func(symbol string) uintptr {
		address, err := purego.Dlsym(handle, symbol)
		if err != nil {
			return 0
		}
		return address
	})}, nil
}

// lookUp finds each entry's best symbol; 0 where there is none.
func lookUp(find func(symbol string) uintptr) (address [EntryCount]uintptr) {
	for e := range entries {
		for _, symbol := range entries[e].symbols {
			if address[e] = find(symbol); address[e] != 0 {
				break
			}
		}
	}
	return address
}

// Call passes the arguments on as they are, without reflection.
func (n *native) Call(e Entry, args []uintptr) Result {
	r, _, _ := purego.SyscallN(n.address[e], args...)
	return Result(int32(r))
}

// Has says whether the library exports the entry.
func (n *native) Has(e Entry) bool { return n.address[e] != 0 }

// Name is the library's.
func (n *native) Name() string { return n.name }
