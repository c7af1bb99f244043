package host

// Needs is what a stage takes from the machine while it runs.
type Needs struct {
	HostBytes   int64 // beyond what the partition's plan already reserved
	DeviceBytes int64
	Threads     int // CPU threads that it keeps busy
}
