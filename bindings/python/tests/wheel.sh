#!/usr/bin/env bash
# Installs a wheel into an empty environment of each interpreter, with nothing else in it, and runs the tests there.
#
#   tests/wheel.sh WHEEL [PYTHON...]
#
# Without PYTHON: those of versions 3.9 to 3.13 that are on PATH, in ~/.pyenv/versions, or in the folders that
# SEALC2_PYTHONS names. With SEALC2_PARAMS the first interpreter also makes the proofs that take half a minute; the
# others prove tiny circuits. Fails where a test fails, and where no interpreter is found.
set -euo pipefail
wheel=$(realpath "$1")
shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
versions="3.9 3.10 3.11 3.12 3.13"
pythons=("$@")
if [ "${#pythons[@]}" = 0 ]; then
  for v in $versions; do
    IFS=: read -ra folders <<< "${SEALC2_PYTHONS:-}:$PATH"
    for candidate in "${folders[@]/%//python$v}" "$HOME"/.pyenv/versions/"$v".*/bin/python; do
      if [ "$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = "$v" ]; then
        pythons+=("$candidate")
        break
      fi
    done
  done
fi
[ "${#pythons[@]}" -gt 0 ] || { echo "no Python of $versions" >&2; exit 1; }

temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
failed=0 params="${SEALC2_PARAMS:-}"
unset SEALC2_LIB SEALC2_PARAMS PYTHONPATH
export SEALC2_TEST_INSTALLED=1 PYTHONDONTWRITEBYTECODE=1
for python in "${pythons[@]}"; do
  name=$("$python" -c 'import platform; print(platform.python_implementation(), platform.python_version())')
  rm -rf "$temp/env"
  log="$temp/log"
  if "$python" -m venv "$temp/env" >"$log" 2>&1; then
    run=("$temp/env/bin/python")
    "${run[@]}" -m pip install --quiet --disable-pip-version-check --no-index --no-deps "$wheel"
    how=pip
  else # Debian's python3 without python3-venv: what pip does with this wheel is to unpack it
    "$python" -m venv --without-pip "$temp/env"
    run=("$temp/env/bin/python")
    "${run[@]}" -m zipfile -e "$wheel" "$("${run[@]}" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
    how=unpacked
  fi
  where=$("${run[@]}" -c 'import sealc2; print(sealc2._native.candidates()[0])')
  [[ "$where" == "$temp"/env/* && -f "$where" ]] || { echo "$name: the library would be $where" >&2; exit 1; }
  if (cd "$temp" && SEALC2_PARAMS="$params" "${run[@]}" -m unittest discover "$here") >"$log" 2>&1; then
    echo "ok    $name ($how): $(grep -m1 '^Ran ' "$log"), $(tail -n1 "$log")"
  else
    echo "FAIL  $name ($how)"
    cat "$log"
    failed=1
  fi
  params=
done
exit "$failed"
