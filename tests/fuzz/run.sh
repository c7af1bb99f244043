#!/usr/bin/env bash
# Fuzzes all targets of the packages, one after the other: run.sh TIME WORKERS PACKAGE...
# Up to Go 1.26 the end of the time may itself count as a failure (golang/go#75804). Nothing was found then: it is
# tried again.
set -euo pipefail
time=$1 workers=$2
shift 2
log=$(mktemp)
trap 'rm -f "$log"' EXIT

fuzz() {
  for _ in 1 2 3; do
    if "${GO:-go}" test -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 5x -parallel "$workers" "$1" 2>&1 | tee "$log"; then
      return 0
    fi
    if grep -q 'Failing input written' "$log" || ! grep -q 'context deadline exceeded' "$log"; then
      return 1
    fi
  done
  return 1
}

for package in "$@"; do
  targets=$("${GO:-go}" test -list '^Fuzz' "$package")
  for target in $(grep '^Fuzz' <<< "$targets" || true); do
    echo "== $package $target"
    fuzz "$package" "$target"
  done
done
