#!/usr/bin/env bash
# Packs what run.sh needs on a machine with a card and nothing but a driver: test and bench binaries without cgo, the
# command, the kernels with those that only tests run, and small data.
#
#   bundle.sh FOLDER      writes FOLDER and FOLDER.tar.gz, at most 64 MiB
#
#   ARCHS, PTX            as build.sh of the kernels has them; FATBIN names a file that is built already
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
out=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$root"
rm -rf "${out:?}"/*
mkdir -p "$out/bin" "$out/tests" "$out"/engine/{params,circuit,groth16,host}
if [ -n "${FATBIN-}" ]; then
  cp "$FATBIN" "$out/kernels.fatbin"
else
  TESTS=1 cuda/kernels/build.sh "$out/kernels.fatbin"
fi
for package in cuda cuda/{driver,kernels,ntt,rows,kinds,msm,points,setup} engine; do
  mkdir -p "$out/$package"
  CGO_ENABLED=0 go test -c -trimpath -ldflags '-s -w' -o "$out/bin/$(basename "$package").test" "./$package"
done
mkdir -p "$out/cuda/nvml" # NVML is reached through cgo
CGO_ENABLED=1 CGO_CFLAGS="-O2 -Wno-deprecated-declarations" go test -c -trimpath -ldflags '-s -w' -o "$out/bin/nvml.test" ./cuda/nvml
CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$out/bin/sealc2" ./bindings/cli
cp -r tests/vectors tests/params.sh "$out/tests/"
cp -r cuda/kernels/tuning "$out/cuda/kernels/" # tests compare numbers with them
cp tests/device/run.sh go.mod "$out/"
tar -C "$(dirname "$out")" -czf "$out.tar.gz" "$(basename "$out")"
bytes=$(stat -c %s "$out.tar.gz")
echo "$out.tar.gz: $bytes bytes"
[ "$bytes" -le $((64 << 20)) ] || { echo "want at most 64 MiB" >&2; exit 1; }
