// Package cuzkv1 is the wire format of cuzk's proving service: what protoc makes of proving.proto, and nothing else.
//
// Made with protoc 35.1 (PyPI grpcio-tools), protoc-gen-go v1.36.12 and protoc-gen-go-grpc v1.6.2 (go install of
// google.golang.org/protobuf/cmd/protoc-gen-go and google.golang.org/grpc/cmd/protoc-gen-go-grpc), in this folder:
//
//	python3 -m grpc_tools.protoc -I. --go_out=. --go_opt=paths=source_relative \
//	  --go-grpc_out=. --go-grpc_opt=paths=source_relative proving.proto
package cuzkv1
