#!/usr/bin/env bash
# Follows docs/replace-supraseal.md with a small program: a lock file of the registry's crate, the patch and the commands of
# "A Rust tree" as they are written there, the signs of "Did it work?", the way back.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
page=$root/docs/replace-supraseal.md
crate=$root/bindings/rust/supraseal-c2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export CARGO_TARGET_DIR=$work/target # else what is compiled here stays for ever
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "recipe"
version = "0.1.0"
edition = "2021"

[dependencies]
supraseal-c2 = "^0.1.0"
TOML
cp Cargo.toml stock.toml
cat >src/main.rs <<'RUST'
fn main() {
    match supraseal_c2::SRS::try_new("no-such.params".into(), false) {
        Ok(_) => println!("opened"),
        Err(e) => println!("{}", e),
    }
}
RUST
fail() { echo "recipe: $*" >&2; exit 1; }
version() { cargo tree --quiet --depth 0 --edges normal --package supraseal-c2; }
section() { sed -n "/^## $1\$/,/^## /p" "$page"; } # of the page

cargo generate-lockfile --quiet
[[ $(version) == "supraseal-c2 v0.1.2" ]] || fail "want the registry's 0.1.2, got $(version)"

section "A Rust tree" | sed -n '/^```toml$/,/^```$/{/^```/!p}' | sed "s|/path/to/sealc2|$root|" >patch.toml
grep -q "^supraseal-c2 = { path = \"$crate\" }\$" patch.toml || fail "the page has another patch: $(cat patch.toml)"
{ echo; cat patch.toml; } >>Cargo.toml
if cargo metadata --locked --format-version 1 >/dev/null 2>locked.err; then
    fail "--locked took a lock file of the registry's crate"
fi
grep -q 'lock file' locked.err || fail "--locked failed for another reason: $(cat locked.err)"
section "A Rust tree" | sed -n 's/^    \(cargo .*\)/\1/p' >commands
grep -q '^cargo update -p supraseal-c2' commands || fail "the page has other commands: $(cat commands)"
bash -euo pipefail commands 2>log || fail "$(cat log)"
[[ $(version) == "supraseal-c2 v0.1.3 ($crate)" ]] || fail "want 0.1.3 of $crate, got $(version)"
cargo metadata --locked --format-version 1 >/dev/null || fail "--locked fails after the update"

program=$work/target/release/recipe
grep -q libsealc2.so "$program" || fail "the program does not name libsealc2.so"
answer=$(SEALC2_LIB=/nonexistent "$program")
[[ $answer == "sealc2: cannot load /nonexistent (SEALC2_LIB)"* ]] || fail "without the library: $answer"
answer=$("$program")
[[ $answer == *no-such.params* ]] || fail "with the library: $answer"

# Without the patch there is no supraseal-c2 in the lock file to update; any command that may write it finds 0.1.2.
cp stock.toml Cargo.toml
[[ $(version) == "supraseal-c2 v0.1.2" ]] || fail "the way back gave $(version)"
echo "recipe: as written"
