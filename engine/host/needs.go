package host

// Needs is what a stage takes from the machine while it runs.
type Needs struct {
	HostBytes   int64 // beyond what the partition's plan already reserved
	DeviceBytes int64
	Threads     int // CPU threads that it keeps busy
}

// Plus is the sum, part by part.
func (n Needs) Plus(m Needs) Needs {
	return Needs{n.HostBytes + m.HostBytes, n.DeviceBytes + m.DeviceBytes, n.Threads + m.Threads}
}

// within says whether n fits under ceiling in every part.
func (n Needs) within(ceiling Needs) bool {
	return n.HostBytes <= ceiling.HostBytes && n.DeviceBytes <= ceiling.DeviceBytes && n.Threads <= ceiling.Threads
}

// minus is the difference, part by part.
func (n Needs) minus(m Needs) Needs {
	return Needs{n.HostBytes - m.HostBytes, n.DeviceBytes - m.DeviceBytes, n.Threads - m.Threads}
}
