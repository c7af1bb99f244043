#!/usr/bin/env bash
# Packs what run.sh needs on a machine with a card, its driver and python3: test and bench binaries without cgo, the command, the
# library, the reference's tests over it, the kernels with those that only tests run, and small data.
#
#   bundle.sh FOLDER      writes FOLDER and FOLDER.tar.gz, at most 64 MiB; make device-bundle calls it
#
#   ARCHS, PTX            as build.sh of the kernels has them; FATBIN names a file of test kernels that is built already
#   CARGO_TARGET_DIR, CUDA_FOLDER   as tests/rust/run.sh; without the first, or without cargo, the step `rust` is left out
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
out=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$root"
rm -rf "${out:?}"/*
mkdir -p "$out"/{bin,lib,tests} "$out"/engine/{params,circuit,groth16,host}
if [ -n "${FATBIN-}" ]; then
  cp "$FATBIN" "$out/kernels.fatbin"
else
  TESTS=1 cuda/kernels/build.sh "$out/kernels.fatbin"
fi
# The library and the command have their kernels inside.
make --no-print-directory BUILD="$out/lib" ${ARCHS+CUDA_ARCHS="$ARCHS"} ${PTX+CUDA_PTX="$PTX"} lib
strip "$out/lib/libsealc2.so"
CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$out/bin/sealc2" ./bindings/cli
for package in cuda cuda/{driver,kernels,ntt,rows,msm,points,setup,kinds} engine; do
  mkdir -p "$out/$package"
  CGO_ENABLED=0 go test -c -trimpath -ldflags '-s -w' -o "$out/bin/$(basename "$package").test" "./$package"
done
mkdir -p "$out/cuda/nvml" # NVML is reached through cgo
CGO_ENABLED=1 CGO_CFLAGS="-O2 -Wno-deprecated-declarations" go test -c -trimpath -ldflags '-s -w' -o "$out/bin/nvml.test" ./cuda/nvml
if [ -n "${CARGO_TARGET_DIR-}" ] && command -v cargo >/dev/null; then
  tests/rust/run.sh --binary "$out/bin/proofs"
else
  echo "without cargo: the step rust is left out" >&2
fi
cp -r tests/vectors tests/params.sh "$out/tests/"
cp -r cuda/kernels/tuning "$out/cuda/kernels/" # tests compare numbers with them
cp tests/device/run.sh tests/device/table.awk tests/device/jobs.awk go.mod "$out/"
tar -C "$(dirname "$out")" -czf "$out.tar.gz" "$(basename "$out")"
bytes=$(stat -c %s "$out.tar.gz")
echo "$out.tar.gz: $bytes bytes"
[ "$bytes" -le $((64 << 20)) ] || { echo "want at most 64 MiB" >&2; exit 1; }
