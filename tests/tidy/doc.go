// Package tidy checks the source tree itself: who may import whom, what library code may not call, and what
// no file may contain. It holds tests only.
package tidy
