package host

import (
	"fmt"
	"strings"

	"github.com/klauspost/cpuid/v2"
)

// notable are the CPU features that decide which arithmetic gnark-crypto and the hash code take.
var notable = []cpuid.FeatureID{cpuid.ADX, cpuid.BMI2, cpuid.SHA, cpuid.AVX2, cpuid.AVX512F, cpuid.AVX512IFMA}

// CPU describes the processor in one line for a log: name, counts, and which notable features it has.
func CPU() string {
	var have, lack []string
	for _, f := range notable {
		if cpuid.CPU.Supports(f) {
			have = append(have, f.String())
		} else {
			lack = append(lack, f.String())
		}
	}
	name := cpuid.CPU.BrandName
	if name == "" {
		name = "unnamed CPU"
	}
	line := fmt.Sprintf("%s, %d logical CPUs, has %s", name, cpuid.CPU.LogicalCores, orNone(have))
	if len(lack) > 0 {
		line += ", lacks " + strings.Join(lack, " ")
	}
	return line
}

func orNone(words []string) string {
	if len(words) == 0 {
		return "none of the notable features"
	}
	return strings.Join(words, " ")
}
