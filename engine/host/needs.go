package host

// Memories is how many devices' memories a budget tells apart.
const Memories = 32

// Needs is what a stage takes from the machine while it runs.
type Needs struct {
	HostBytes   int64 // beyond what the partition's plan already reserved
	DeviceBytes int64
	Threads     int // CPU threads that it keeps busy
	// Memory is DeviceBytes by device, each of which has a ceiling of its own: what is free on one is no use on another.
	Memory [Memories]int64
}

// Plus is the sum, part by part.
func (n Needs) Plus(m Needs) Needs {
	for i := range m.Memory {
		m.Memory[i] += n.Memory[i]
	}
	return Needs{n.HostBytes + m.HostBytes, n.DeviceBytes + m.DeviceBytes, n.Threads + m.Threads, m.Memory}
}

// within says whether n fits under ceiling in every part.
func (n Needs) within(ceiling Needs) bool {
	return n.HostBytes <= ceiling.HostBytes && n.DeviceBytes <= ceiling.DeviceBytes && n.Threads <= ceiling.Threads && n.crowded(ceiling) < 0
}

// crowded is a device on which n does not fit under ceiling; -1 where it does on all.
func (n Needs) crowded(ceiling Needs) int {
	for i, bytes := range n.Memory {
		if bytes > ceiling.Memory[i] {
			return i
		}
	}
	return -1
}

// minus is the difference, part by part.
func (n Needs) minus(m Needs) Needs {
	for i := range m.Memory {
		m.Memory[i] = n.Memory[i] - m.Memory[i]
	}
	return Needs{n.HostBytes - m.HostBytes, n.DeviceBytes - m.DeviceBytes, n.Threads - m.Threads, m.Memory}
}
