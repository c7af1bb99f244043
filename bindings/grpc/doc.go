// Package grpc is the proving service that Curio calls: cuzk.v1.ProvingEngine, plaintext gRPC over a unix socket or
// TCP: a layer over the engine's jobs (engine.Submit). What it adds is who waits for a job, since one for which nobody does any more is cancelled,
// and cuzk's words for what jobs are and end with. `sealc2 serve` runs it; nobody else imports it.
//
// It proves PoRep C2 and refuses the other kinds by name. A failed proof is an answer with status FAILED and the
// error's text; a gRPC error means that the server has no such job or took none:
//
//	INVALID_ARGUMENT    a request that cannot be read, nothing submitted, no kind, no vanilla proof, a request id that is no engine.JobID
//	UNIMPLEMENTED       a kind of proof, or loading of parameters, that this version does not do
//	ALREADY_EXISTS      a job of this name and other content waits or runs
//	RESOURCE_EXHAUSTED  the queue is full for this priority, in jobs or bytes, or a message is above MaxMessageBytes
//	NOT_FOUND           no job of this name, or its result is gone
//	INTERNAL            an unknown circuit to load; a defect
//	UNAVAILABLE         the server is ending
//
// A request id is the id of a job. The same id with the same content joins the job, or gets the proof that is there, so that a
// retry costs nothing; a job that failed is run again. A job ends when the last caller that waits in Prove has gone;
// one from SubmitProof runs to its end. Priorities are classes.
//
// Memory is bounded: C1 outputs lie outside the Go heap, in the engine's queue, and few messages are received
// at a time (Config.Messages) while the others are held back by flow control.
//
// The facts on names, numbers and behaviour come from curio's extern/cuzk and lib/cuzk.
package grpc
