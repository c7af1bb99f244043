package engine

import (
	"sync"

	"github.com/sealc2/sealc2/engine/host"
)

// threads are those that the CPU's part of proofs runs on. The first proof starts them: an engine that only verifies needs
// none.
type threads struct {
	once sync.Once
	pool *host.Pool
}

// pool are the engine's threads, near its devices where those stand on one node. Nil, which means goroutines, where the
// machine does not say which CPUs there are.
func (e *Engine) pool() *host.Pool {
	e.threads.once.Do(func() {
		topology, err := host.ThisMachine().Topology()
		if err != nil {
			e.log("warn", "threads are not bound to CPUs: %v", err)
			return
		}
		near := e.devices[0].node
		for _, d := range e.devices {
			if d.node != near {
				near = -1
			}
		}
		e.threads.pool = host.NewPool(topology, e.limits.Threads, near)
		e.log("info", "%s; %s", e.threads.pool, topology)
		for _, fault := range topology.Faults {
			e.log("debug", "%s", fault)
		}
	})
	return e.threads.pool
}

// close ends the threads, and lets none be started later.
func (t *threads) close() {
	t.once.Do(func() {})
	if t.pool != nil {
		t.pool.Close()
	}
}
