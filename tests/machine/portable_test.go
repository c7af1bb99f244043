package machine

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sealc2/sealc2/tests/support"
)

// emulator runs programs for x86-64 on a CPU of our choice.
const emulator = "qemu-x86_64"

// plainCPUs are emulated CPUs with the notable features that they have, of ADX BMI2 SHA AVX2 AVX512F AVX512IFMA. Each
// makes gnark-crypto, the Go library and our own kernels choose other code.
var plainCPUs = map[string]string{
	"qemu64":  "none of the notable features",
	"Nehalem": "none of the notable features",
	"Haswell": "BMI2 AVX2",
}

// emulated puts the words before a command line that run it on a CPU. A machine without the emulator is skipped.
func emulated(t *testing.T, cpu string, args ...string) []string {
	t.Helper()
	if _, err := exec.LookPath(emulator); err != nil {
		t.Skipf("needs %s, of the Debian package qemu-user, which .ci/run installs: %v", emulator, err)
	}
	return append([]string{emulator, "-cpu", cpu}, args...)
}

// Goal: the emulated CPUs do lack what they are used for, so that a test which passes on them tells something.
// Method: one instruction each, which must end its process.
func TestEmulated_Lacks(t *testing.T) {
	program := filepath.Join(t.TempDir(), "instruction")
	if err := build("gcc", "-O1", "-static", "testdata/instruction.c", "-o", program); err != nil {
		t.Fatal(err)
	}
	for cpu, lacks := range map[string][]string{
		"qemu64": {"adx", "bmi2", "avx2", "sha", "avx512ifma"}, "Nehalem": {"adx", "bmi2", "avx2", "sha", "avx512ifma"},
		"Haswell": {"adx", "sha", "avx512ifma"},
	} {
		for _, name := range append(lacks, "none") {
			args := emulated(t, cpu, program, name)
			o := run(t, time.Minute, nil, args[0], args[1:]...)
			if (o.code == 0) != (name == "none") {
				t.Errorf("%s, %s: exit code %d\n%s", cpu, name, o.code, o.stderr)
			}
		}
	}
	if o := run(t, time.Minute, nil, emulator, "-cpu", "Haswell", program, "bmi2"); o.code != 0 {
		t.Errorf("Haswell has bmi2, but: %d\n%s", o.code, o.stderr)
	}
}

// Goal: the command and the library as they are built run on a plain CPU: the reference's proof of a real sector
// verifies, another one does not, and the library opens and answers.
func TestPlainCPU_Verify(t *testing.T) {
	proof, keys := referenceSector(t)
	changed := readFile(t, proof)
	changed[100], changed[101] = changed[101], changed[100] // inside B: no point any more
	other := writeFile(t, filepath.Join(t.TempDir(), "other"), changed)
	for cpu, has := range plainCPUs {
		verify := func(proof string) outcome {
			args := emulated(t, cpu, command, "verify", "--log", "info", "--c1", c1File("porep-2k-a"), "--proof", proof, "--params", keys,
				"--sector-id", "1", "--miner", "t01000")
			return run(t, 2*time.Minute, nil, args[0], args[1:]...)
		}
		if o := verify(proof); o.code != 0 || o.stdout != "verified: 1 partition\n" || !strings.Contains(o.stderr, "has "+has+", lacks ") {
			t.Errorf("%s: %d, %s%s", cpu, o.code, o.stdout, o.stderr)
		}
		if o := verify(other); o.code != 1 || !strings.Contains(o.stderr, "partition 0: B: want a canonical point of order r") {
			t.Errorf("%s: another proof: %d, %s%s", cpu, o.code, o.stdout, o.stderr)
		}
		args := emulated(t, cpu, host, library, "prove", c1File("porep-2k-a"), keys, "0")
		if o := run(t, 2*time.Minute, nil, args[0], args[1:]...); o.code != 0 || !strings.HasPrefix(o.stdout, "params\n") {
			t.Errorf("%s: the library without parameters: %d, %s%s", cpu, o.code, o.stdout, o.stderr)
		}
	}
}

// portable are the tests that compare bytes with the reference: proofs of the tiny circuits through the whole engine
// (expand, evaluate, quotient, all five sums, assembly), parameter files of the setup, both hashes, lanes.
var portable = map[string]string{
	"engine":                  "TestProveProgram_EqualsReference",
	"engine/circuit":          "TestFromR1CS_EqualsReference",
	"engine/circuit/poseidon": "TestHash_Vectors|TestParametersOf_Vectors",
	"engine/lanes":            ".",
	"engine/params":           "TestSetup_Tiny|TestOpen_Tiny",
}

// onCPU builds the tests of the packages without cgo and runs them on an emulated CPU.
func onCPU(t *testing.T, cpu string, tests map[string]string) {
	dir := t.TempDir()
	for name, pattern := range tests {
		t.Run(cpu+", "+name, func(t *testing.T) {
			program := filepath.Join(dir, strings.ReplaceAll(name, "/", "-")+".test")
			args := emulated(t, cpu, program, "-test.v", "-test.short", "-test.run", pattern)
			if err := build("go", "test", "-c", "-o", program, root+"/"+name); err != nil {
				t.Fatal(err)
			}
			// Tests read their vectors relative to their package.
			args = append([]string{"-C", filepath.Join(root, name)}, args...)
			o := run(t, 15*time.Minute, []string{"SEALC2_PARAMS=", "SEALC2_LONG="}, "env", args...)
			if o.code != 0 || !strings.Contains(o.stdout, "--- PASS: Test") {
				t.Errorf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
			}
		})
	}
}

// Goal: the same bytes without any of the instructions that we and our libraries use where they are.
func TestPlainCPU_SameBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("emulates half a minute of computing")
	}
	onCPU(t, "qemu64", portable)
}

// Goal: the same on CPUs between: with AVX2 and BMI2 but no ADX, and with all that the emulator has, which is no AVX-512.
func TestPlainCPU_SameBytes_Others(t *testing.T) {
	support.Long(t)
	all := map[string]string{"engine/cpu": ".", "engine/groth16": "TestTiny|TestSectors|TestDecode"}
	onCPU(t, "qemu64", all)
	for name, pattern := range portable {
		all[name] = pattern
	}
	onCPU(t, "Haswell", all)
	onCPU(t, "max", all)
}

// Goal: the witness of a real sector, 2.7 million variables and rows, is the reference's on a plain CPU.
func TestPlainCPU_Witness(t *testing.T) {
	support.Long(t)
	args := emulated(t, "qemu64", command, "witness", "digest", "--c1", c1File("porep-2k-a"))
	o := run(t, 15*time.Minute, nil, args[0], args[1:]...)
	if o.code != 0 {
		t.Fatalf("exit code %d\n%s", o.code, o.stderr)
	}
	var got, want struct{ Partitions []map[string]any }
	for text, into := range map[string]any{o.stdout: &got, string(readFile(t, root+"/tests/vectors/c1/porep-2k-a/witness.json")): &want} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	if len(got.Partitions) != 1 || len(want.Partitions) != 1 || len(want.Partitions[0]) < 10 {
		t.Fatalf("%d partitions, the reference has %d", len(got.Partitions), len(want.Partitions))
	}
	for field, value := range want.Partitions[0] {
		if field != "seconds" && !reflect.DeepEqual(got.Partitions[0][field], value) {
			t.Errorf("%s differs", field)
		}
	}
}
