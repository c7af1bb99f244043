// Package sim is a CUDA driver that needs no GPU: a driver.Table over host memory, for tests.
//
// Devices are what the test says. Device memory is host memory at the same addresses, between pages that nothing may
// touch, and filled with a pattern when it is mapped. Work that is queued runs later, when somebody asks how far a stream is:
// the streams' heads in an order that a seed decides, each only after the events that it waits for. So a copy
// whose source changes too early, a missing wait between two streams, or a result read before its stream is synchronised
// shows. Kernels come from an emulator library, built from the same source as the device's, or are Go functions.
//
// A current context belongs to a thread, as with the real driver. What a driver would answer to wrong handles, sizes,
// addresses, missing kernels or too little memory, it answers too; after Lose the context answers
// nothing else until it is given up, and after a kernel that fails the process gets no new one either. Live counts what has not been given back.
package sim
