package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/spf13/pflag"
)

// The errors of Set say what is wanted; flagError adds the flag and what was given.

// choice is a flag that takes one of a few words; another one is refused with the list of them.
type choice struct {
	value string
	legal []string
	// alias gives other spellings of legal words; may be nil.
	alias map[string]string
}

var _ pflag.Value = (*choice)(nil)

func (c *choice) String() string { return c.value }

func (c *choice) Type() string { return strings.Join(c.legal, "|") }

func (c *choice) Set(text string) error {
	if full, ok := c.alias[text]; ok {
		text = full
	}
	i := slices.IndexFunc(c.legal, func(l string) bool { return strings.EqualFold(l, text) })
	if i < 0 {
		return errors.New("one of " + strings.Join(c.legal, ", "))
	}
	c.value = c.legal[i]
	return nil
}

// device is the --device flag: what an engine.Config's Device is, except empty. Which GPUs there are, the engine finds out.
type device struct{ value string }

var _ pflag.Value = (*device)(nil)

// deviceForm is how devices are written.
var deviceForm = regexp.MustCompile(`^(cpu|auto|cuda|cuda:all|cuda:[0-9]+(,[0-9]+)*)$`)

func (d *device) String() string { return d.value }

func (d *device) Type() string { return "cpu|cuda|cuda:N,..|cuda:all|auto" }

func (d *device) Set(text string) error {
	text = strings.ToLower(text)
	if !deviceForm.MatchString(text) {
		return errors.New("one of cpu, cuda, cuda: and a number or several with commas between them, cuda:all, auto")
	}
	d.value = text
	return nil
}

// oneDevice is the --device flag of commands whose work one device does alone.
type oneDevice struct{ *device }

func (d oneDevice) Type() string { return "cpu|cuda|cuda:N|auto" }

func (d oneDevice) Set(text string) error {
	var wish device
	if err := wish.Set(text); err != nil || wish.value == "cuda:all" || strings.Contains(text, ",") {
		return errors.New("one of cpu, cuda, cuda: and a number, auto; this work is not shared by several GPUs")
	}
	*d.device = wish
	return nil
}

// miner is the --miner flag.
type miner struct {
	id  [32]byte
	set bool
}

var _ pflag.Value = (*miner)(nil)

func (m *miner) String() string {
	if !m.set {
		return ""
	}
	return hex.EncodeToString(m.id[:])
}

func (m *miner) Type() string { return "ID" }

func (m *miner) Set(text string) (err error) {
	m.id, err = parseMiner(text)
	m.set = err == nil
	return err
}

// scalars is the --r or the --s flag.
type scalars struct{ values []fr.Element }

var _ pflag.Value = (*scalars)(nil)

func (s *scalars) String() string {
	if len(s.values) == 0 {
		return ""
	}
	return fmt.Sprintf("%d scalars", len(s.values))
}

func (s *scalars) Type() string { return "HEX,.." }

func (s *scalars) Set(text string) (err error) {
	s.values, err = parseScalars(text)
	return err
}
