#!/usr/bin/env bash
# Makes the development parameters of one shape, once, and keeps them between clones.
#
#   tests/params.sh SEALC2 SHAPE NAME FOLDER any|these
#
# SEALC2 is the command, NAME the shape's name in tests/vectors/setup. What setup gives must equal the digest
# there, else this fails. A mark in FOLDER says that it did: "any" takes a mark of any version of the code,
# since the bytes are the same; "these" wants one of these very sources, so that a change of the setup is tried.
# A mark without its files stands for nothing.
set -euo pipefail
sealc2=$1 shape=$2 name=$3 folder=$4 sources=$5
cd "$(dirname "${BASH_SOURCE[0]}")/.."
oracle=tests/vectors/setup/$name.json
digest_of() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(d[sys.argv[2]]["sha256"])' "$1" "$2"; }

mkdir -p "$folder"
exec 9> "$folder/.lock"
flock 9
made="$folder/.made-$shape-$(digest_of "$oracle" params_file | cut -c1-16)"
exact="$made-$({ find engine/params engine/circuit engine/groth16 engine/host -name '*.go' ! -name '*_test.go' -print0 | sort -z | xargs -0 cat; cat go.mod; } | sha256sum | cut -c1-16)"
whole() { # the file of a part is there, in its length
  local want found
  want=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2] + "_file"]["bytes"])' "$oracle" "$1")
  found=("$folder/dev-$shape-"*".$1")
  [ "${#found[@]}" = 1 ] && [ -f "${found[0]}" ] && [ "$(stat -Lc %s "${found[0]}")" = "$want" ]
}
if whole params && whole vk; then
  [ "$sources" = any ] && [ -e "$made" ] && exit 0
  [ -e "$exact" ] && exit 0
fi

echo "making $shape development parameters in $folder, once"
report=$(mktemp)
trap 'rm -f "$report"' EXIT
"$sealc2" setup --shape "$shape" --out "$folder" --json > "$report" 9>&-
for part in params vk; do
  path=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2] + "_path"])' "$report" "$part")
  want=$(digest_of "$oracle" "${part}_file")
  got=$(sha256sum "$path" | cut -d' ' -f1)
  if [ "$got" != "$want" ]; then
    rm -f "$made"* "$path"
    echo "$path: want SHA-256 $want as $oracle says, got $got" >&2
    exit 1
  fi
done
touch "$made" "$exact"
