//go:build !cgo

package nvml

import "github.com/sealc2/sealc2/engine/status"

// Session is NVML in use, which a build without cgo never gets.
type Session struct{}

func none(op string) error {
	return status.New(status.NoDevice, op, "", "NVML", "a build without cgo")
}

// Open says why there is none.
func Open() (*Session, error) { return nil, none("nvml.Open") }

// Close does nothing.
func (s *Session) Close() error { return nil }

// Release says why there is none.
func (s *Session) Release() (string, error) { return "", none("nvml.Release") }

// Health says why there is none.
func (s *Session) Health(string) (Health, error) { return Health{}, none("nvml.Health") }
