module github.com/sealc2/sealc2

go 1.26.8

require (
	github.com/aead/chacha20 v0.0.0-20180709150244-8b13a72661da
	github.com/consensys/gnark-crypto v0.22.0
	github.com/go-json-experiment/json v1.27.2
	github.com/klauspost/cpuid/v2 v2.4.2
	github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag v1.0.9
	golang.org/x/crypto v0.59.0
	golang.org/x/sync v0.25.0
	golang.org/x/sys v0.50.0
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
)

require (
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/text v0.44.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1 // indirect
)

require (
	github.com/NVIDIA/go-nvml v0.13.4-1
	github.com/bits-and-blooms/bitset v1.25.0 // indirect
	github.com/ebitengine/purego v0.11.3
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
)
