package engine

// Version is the version of sealc2: of the library, the command and the bindings alike.
const Version = "0.1.0"
