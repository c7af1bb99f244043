#!/usr/bin/env bash
# Tests and measurements on a card, from a bundle that needs nothing but a driver (make device-bundle).
#
#   run.sh [step...]      the steps named, or all that have not succeeded yet
#   run.sh -l             the steps with their budgets in seconds
#
# Each step has a budget and is stopped at its end. What it prints goes to $STATE/step.log (default: state beside this
# script), what succeeded is remembered there, and a table with the times ends the run. Exit code 1 where a step failed.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
STATE=${STATE:-$root/state}
mkdir -p "$STATE"
export SEALC2_TEST_DEVICE=cuda SEALC2_TEST_FATBIN=$root/kernels.fatbin SEALC2_PARAMS=${SEALC2_PARAMS:-$STATE/params}

steps=(driver:30 field:60 ntt:60 rows:30 msm:90 points:60 setup:60 tiny:30 params:60 oracle:60 faults:150 bench:200 sanitize:200)
sanitizer=${SANITIZER:-$(command -v compute-sanitizer)}

# go NAME FOLDER ARGUMENTS runs a test binary where its package's folder would be.
go() {
  local name=$1 folder=$2
  shift 2
  (cd "$root/$folder" && "$root/bin/$name.test" -test.timeout 10m "$@")
}

driver() { go driver cuda/driver -test.v -test.run 'TestCard' && go nvml cuda/nvml -test.v; }
field() { go kernels cuda/kernels; }
ntt() { go ntt cuda/ntt -test.v; }
rows() { go rows cuda/rows -test.v && go kinds cuda/kinds -test.v; }
msm() { go msm cuda/msm -test.v; }
points() { go points cuda/points; }
setup() { go setup cuda/setup -test.v; }
tiny() { go cuda cuda -test.v -test.run 'TestProve'; }
# Development parameters, whose bytes must be the reference's.
params() {
  local shape
  for shape in 2KiB:porep-2k 16KiB:porep-16k 32KiB:porep-32k; do
    case " ${SHAPES:-2KiB 16KiB 32KiB} " in *" ${shape%%:*} "*) (cd "$root" && tests/params.sh bin/sealc2 "${shape%%:*}" "${shape##*:}" "$SEALC2_PARAMS" any) || return 1 ;; esac
  done
}
oracle() { go engine engine -test.v -test.run 'TestProve_GPUEqualsReference|TestProveProgram_GPU'; }
faults() { go cuda cuda -test.v -test.run 'TestFaults_NextProofRight'; }
bench() {
  local name
  for name in ntt rows kinds msm points setup; do
    [ ! -x "$root/bin/$name.test" ] || go "$name" "cuda/$name" -test.run '^$' -test.bench . -test.benchtime "${BENCHTIME:-3x}" || return 1
  done
}
# Memory accesses, races, uninitialised reads and barriers of unit kernels and of a small proof.
sanitize() {
  [ -n "$sanitizer" ] || { echo "compute-sanitizer is not on PATH"; return 1; }
  local tool
  for tool in ${TOOLS:-memcheck racecheck initcheck synccheck}; do
    echo "== $tool"
    (cd "$root/cuda" && "$sanitizer" --tool "$tool" --report-api-errors no --error-exitcode 9 "$root/bin/cuda.test" -test.run 'TestProve_EqualsReference/tiny-16' -test.timeout 10m) || return 1
  done
}

if [ "${1-}" = --step ]; then # one step in a shell of its own, so that it can be stopped with all that it started
  "$2"
  exit
fi
if [ "${1-}" = -l ]; then
  printf '%s\n' "${steps[@]}" | tr : '\t'
  exit 0
fi
wanted=("$@")
if [ ${#wanted[@]} = 0 ]; then
  for s in "${steps[@]}"; do [ -e "$STATE/${s%%:*}.ok" ] || wanted+=("${s%%:*}"); done
fi
total=0
for s in "${steps[@]}"; do
  case " ${wanted[*]} " in *" ${s%%:*} "*) total=$((total + ${s##*:})) ;; esac
done
echo "up to $total s in all"
table=() failed=0
for name in "${wanted[@]}"; do
  budget=
  for s in "${steps[@]}"; do [ "${s%%:*}" != "$name" ] || budget=${s##*:}; done
  [ -n "$budget" ] || { echo "no step $name; run.sh -l lists them" >&2; exit 2; }
  echo "--- $name, up to $budget s"
  rm -f "$STATE/$name.ok"
  begin=$(date +%s.%N)
  if timeout -k 5 "$budget" "$root/run.sh" --step "$name" >"$STATE/$name.log" 2>&1; then
    result=ok
    touch "$STATE/$name.ok"
  else
    result="FAILED ($?)"
    failed=1
    tail -n "${LINES_OF_LOG:-25}" "$STATE/$name.log"
  fi
  took=$(awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
  table+=("$(printf '%-10s %-14s %7s s of %s' "$name" "$result" "$took" "$budget")")
done
printf '%s\n' "${table[@]}"
exit $failed
