package main

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"testing"
)

func TestParseMiner(t *testing.T) {
	full := strings.Repeat("0123456789abcdef", 4)
	good := map[string]string{ // to the leading bytes of the prover id
		"t01000":              "e807",
		"f01000":              "e807",
		"1000":                "e807",
		"t00":                 "00",
		"0":                   "00",
		"127":                 "7f",
		"128":                 "8001",
		"f0127126":            "96e107",
		"9223372036854775807": "ffffffffffffffff7f",
		full:                  full,
		strings.ToUpper(full): full,
	}
	for text, want := range good {
		id, err := parseMiner(text)
		if got := hex.EncodeToString(id[:]); err != nil || got != want+strings.Repeat("0", 64-len(want)) {
			t.Errorf("%q: want %s, got %s, %v", text, want, got, err)
		}
	}
	for _, text := range []string{
		"", "t0", "f0", "t1abc", "f3xyz", "t", "-1", "+1", "0x10", " 1000", "1000 ", "t0-5", "9223372036854775808",
		"99999999999999999999999", full[1:], full + "0", full[:63] + "g", "１０００",
	} {
		if id, err := parseMiner(text); err == nil {
			t.Errorf("%q: want a refusal, got %x", text, id)
		}
	}
}

func FuzzParseMiner(f *testing.F) {
	for _, seed := range []string{"t01000", "f0127126", "0", "9223372036854775807", strings.Repeat("ab", 32), "t0", "t1x", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := parseMiner(text)
		if err != nil {
			if id != [32]byte{} {
				t.Fatalf("%q: refused with %x", text, id)
			}
			return
		}
		if len(text) == 64 {
			if hex.EncodeToString(id[:]) != strings.ToLower(text) {
				t.Fatalf("%q: got %x", text, id)
			}
			return
		}
		actor, n := binary.Uvarint(id[:])
		if n <= 0 || actor > math.MaxInt64 || strings.Trim(string(id[n:]), "\x00") != "" {
			t.Fatalf("%q: %x is no actor number", text, id)
		}
		digits := strings.TrimLeft(text, "tf")
		if want, err := strconv.ParseUint(digits, 10, 64); err != nil || want != actor {
			t.Fatalf("%q: want %d, got %d (%v)", text, want, actor, err)
		}
	})
}

const orderHex = "01000000fffffffffe5bfeff02a4bd5305d8a10908d83933487d9d2953a7ed73" // r, little-endian

func TestParseScalars(t *testing.T) {
	zero, one := strings.Repeat("0", 64), "01"+strings.Repeat("0", 62)
	for text, want := range map[string][]string{zero: {zero}, one + "," + zero: {one, zero}, strings.Replace(orderHex, "01", "00", 1): {"0" + "0" + orderHex[2:]}} {
		got, err := parseScalars(text)
		if err != nil || len(got) != len(want) {
			t.Errorf("%q: got %d, %v", text, len(got), err)
			continue
		}
		for i := range got {
			if scalarHex(&got[i]) != want[i] {
				t.Errorf("%q: scalar %d is %s", text, i, scalarHex(&got[i]))
			}
		}
	}
	for _, text := range []string{"", ",", zero + ",", "0x" + zero[2:], zero[1:], zero + "0", orderHex, strings.Repeat("f", 64), zero[:63] + "g", zero + " "} {
		if got, err := parseScalars(text); err == nil {
			t.Errorf("%q: want a refusal, got %d scalars", text, len(got))
		}
	}
	if _, err := parseScalars(strings.Repeat(zero+",", maxScalars) + zero); err == nil {
		t.Error("a list without end was taken")
	}
}

func FuzzParseScalars(f *testing.F) {
	for _, seed := range []string{strings.Repeat("0", 64), orderHex, orderHex + "," + orderHex, ",", "zz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseScalars(text)
		if err != nil {
			return
		}
		back := make([]string, len(got))
		for i := range got {
			back[i] = scalarHex(&got[i])
		}
		if strings.Join(back, ",") != strings.ToLower(text) {
			t.Fatalf("%q comes back as %q", text, back)
		}
	})
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "4096": 4096, "3KiB": 3072, "16GiB": 16 << 30, "1TiB": 1 << 40, "5MiB": 5 << 20} {
		if got, err := parseSize("--memory", text); err != nil || got != want {
			t.Errorf("%q: want %d, got %d, %v", text, want, got, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "GiB", "1GB", "1.5GiB", "9999999999TiB", "1 GiB", "0x10"} {
		if got, err := parseSize("--memory", text); err == nil {
			t.Errorf("%q: want a refusal, got %d", text, got)
		}
	}
}
