// Package params is everything about parameter sets: the files that hold the points of an SRS, their
// names, their checks, and the development setup that makes them.
//
// Files are read with pread and never mapped: a mapped set of 47 GB would count as resident memory, and a
// truncation would become SIGBUS. Every point is decoded with a range and curve check; the order of the
// points is checked by Check, once for each file. Whether a key may be used is decided by its content: the
// digest of the verifying key is looked up in the embedded public manifest, and a key that is not there
// needs the caller's explicit leave.
//
// The package refuses a file whose size, counts, points or key do not fit together, with the file, block
// and index. It reads no environment: callers say where a directory came from (Dir.Origin), so that errors
// can name the variable. Callers are engine and the command line.
//
// Sources: bellperson 0.27 src/groth16/{params,verifying_key}.rs for the layout, storage-proofs-core 19.1
// for names and the manifest (parameters.json).
package params
