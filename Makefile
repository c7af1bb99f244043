# make            libsealc2.so, its two shims with supraseal-c2's names, and the sealc2 command, into build/
# make demo       prove a real 2 KiB sector through the Python binding (the first time, make its parameters)
# make test       all tests; also test-long, test-race, bench, fuzz
# make test-rust  the Rust crates, and the reference (filecoin-proofs, bellperson) proving through them
# make device-bundle  tests and measurements for a machine with a GPU and its driver: build/device.tar.gz, see tests/device/run.sh
# make wheel      a Python wheel with the library inside, into build/wheel/; test-wheel: each Python from 3.9 to 3.13 that is there
# make install    PREFIX=/usr/local, DESTDIR= for packagers
# make release    as make, with machine code for every kind of GPU: minutes the first time, then only what has changed
#
# GPU code: CUDA=0 leaves it out. CUDA_ARCHS="90" are the compute capabilities that get machine code, by default those
# of the GPUs of this machine (without one: 90), and CUDA_PTX those of which the PTX goes along: later GPUs compile it when a
# process starts. The compilers are fetched: cuda/kernels/build.sh.
#
# Needs Go, gcc, python3. SEALC2_PARAMS names the folder for development parameters, kept between clones.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

GO ?= go
PYTHON ?= python3
PREFIX ?= /usr/local
DESTDIR ?=
FUZZTIME ?= 60s
FUZZPARALLEL ?= 1
BUILD := build
LIB := $(BUILD)/libsealc2.so
CLI := $(BUILD)/sealc2

VERSION := $(shell sed -n 's/^\#define SEALC2_VERSION "\(.*\)"/\1/p' include/sealc2.h)
CACHE := $(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)/sealc2
SEALC2_PARAMS ?= $(CACHE)/params

CUDA ?= 1
CUDA_ARCHS ?= $(or $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d . | awk '$$1 + 0 >= 75' | sort -un),90)
CUDA_PTX ?= $(CUDA_ARCHS)
CUDA_TOOLKIT ?= 12.9
FATBIN := cuda/kernels/image/kernels.fatbin

# Go's build cache does not see the headers and the version script: their hash makes it look again.
FACE := $(shell cat include/*.h capi/*.h capi/exports.map | sha256sum | cut -c1-16)
FACE_CFLAGS := -O2 -g -Wno-deprecated-declarations -DSEALC2_FACE=0x$(FACE)
# Go asks git for the revision, and fails where git refuses the folder.
GOFLAGS_BUILD := -trimpath -buildvcs=$(shell git status --porcelain >/dev/null 2>&1 && echo auto || echo false)

.PHONY: all release kernels lib shims cli params params-demo demo test vet test-go test-python test-long fuzz test-rust test-race conformance bench device-bundle wheel test-wheel install clean

all: lib shims cli

# The lists of cuda/kernels/build.sh: every architecture that sealc2 runs on; the others take the code of a smaller number, or PTX.
release:
	@$(MAKE) --no-print-directory CUDA_ARCHS="75 80 86 89 90 100 120" CUDA_PTX="90 120" all

# Embedded by the build where it is there. build.sh compiles what its cache does not have.
kernels:
ifeq ($(CUDA),0)
	@rm -f $(FATBIN)
else
	@TOOLKIT="$(CUDA_TOOLKIT)" ARCHS="$(strip $(CUDA_ARCHS))" PTX="$(strip $(CUDA_PTX))" cuda/kernels/build.sh $(FATBIN)
endif

lib: kernels
	@mkdir -p $(BUILD)
	CGO_ENABLED=1 CGO_CFLAGS="$(FACE_CFLAGS)" $(GO) build $(GOFLAGS_BUILD) -buildmode=c-shared \
	  -ldflags "-extldflags '-Wl,--version-script=$(CURDIR)/capi/exports.map -Wl,-soname,libsealc2.so'" -o $(LIB) ./capi
	@rm -f $(BUILD)/libsealc2.h # Go's own header; include/ has the real ones

# Supraseal-c2's raw names over libsealc2.so, which lies in the same folder. The lists of names are the version scripts.
shims: $(BUILD)/libsealc2-s2.so $(BUILD)/libsealc2-s2cuzk.so

$(BUILD)/libsealc2-%.so: capi/shims/%.c capi/shims/raw.h include/sealc2_s2.h include/exports-%.txt | lib
	{ echo '{ global:'; sed 's/$$/;/' include/exports-$*.txt; echo 'local: *; };'; } > $(BUILD)/$*.map
	$(CC) -std=gnu11 -O2 -g -fPIC -shared -Wall -Wextra -Werror -Iinclude $< -o $@ -L$(BUILD) -lsealc2 \
	  -Wl,--version-script=$(BUILD)/$*.map -Wl,-soname,$(notdir $@) -Wl,-rpath,'$$ORIGIN' -Wl,-z,defs
	@rm -f $(BUILD)/$*.map

cli: kernels
	@mkdir -p $(BUILD)
	CGO_ENABLED=0 $(GO) build $(GOFLAGS_BUILD) -o $(CLI) ./bindings/cli

# Development parameters, made once and kept. The demo takes any that have the right bytes; the tests want to
# have seen the setup of these sources make them.
params-demo: cli
	@tests/params.sh $(CLI) 2KiB porep-2k "$(SEALC2_PARAMS)" any

params: cli
	@tests/params.sh $(CLI) 2KiB porep-2k "$(SEALC2_PARAMS)" these
	@tests/params.sh $(CLI) 16KiB porep-16k "$(SEALC2_PARAMS)" these
	@tests/params.sh $(CLI) 32KiB porep-32k "$(SEALC2_PARAMS)" these

demo: all params-demo
	@SEALC2_LIB=$(CURDIR)/$(LIB) $(PYTHON) bindings/python/examples/demo.py "$(SEALC2_PARAMS)"

TEST_ENV := SEALC2_LIB=$(CURDIR)/$(LIB) SEALC2_PARAMS="$(SEALC2_PARAMS)" CGO_CFLAGS="$(FACE_CFLAGS)"

test: vet test-go test-python

vet:
	CGO_CFLAGS="$(FACE_CFLAGS)" $(GO) vet ./...

test-go: all params
	$(TEST_ENV) $(GO) test -timeout 40m ./...

test-python: lib params-demo
	$(TEST_ENV) $(PYTHON) -m unittest discover bindings/python/tests

# With the tests that take minutes; one package at a time, since some need gigabytes.
test-long: all params
	SEALC2_LONG=1 $(TEST_ENV) $(GO) test -p 1 -timeout 6h ./...

# Each fuzz target for FUZZTIME; then the canary, which must fail.
fuzz:
	GO=$(GO) tests/fuzz/run.sh $(FUZZTIME) $(FUZZPARALLEL) $$($(GO) list ./engine/... ./bindings/... ./capi)
	$(GO) test ./tests/fuzz

# The first time it compiles the reference with its CUDA kernels, which takes minutes. tests/rust/README.md has its switches.
test-rust: export CARGO_TARGET_DIR ?= $(CACHE)/cargo-target
test-rust: lib params-demo
	$(TEST_ENV) CUDA_FOLDER="$(CACHE)/cuda" tests/rust/run.sh

test-race: lib
	CGO_CFLAGS="$(FACE_CFLAGS)" SEALC2_LIB=$(CURDIR)/$(LIB) $(GO) test -race -short -timeout 60m ./...

# Every circuit up to 64 GiB and every sealed sector against the reference, large synthetic partitions row by row.
conformance: all params
	$(TEST_ENV) SEALC2_LONG=1 $(GO) test -count=1 -v -timeout 60m ./tests/conformance
	$(TEST_ENV) $(GO) test -count=1 -v -timeout 60m -run 'EqualsReference' ./engine/circuit/... ./engine

bench:
	CGO_CFLAGS="$(FACE_CFLAGS)" $(GO) test -run '^$$' -bench . -benchtime 3x ./engine/...

device-bundle: export CARGO_TARGET_DIR ?= $(CACHE)/cargo-target
device-bundle:
	GO=$(GO) CUDA_FOLDER="$(CACHE)/cuda" tests/device/bundle.sh $(BUILD)/device

wheel: lib
	@mkdir -p $(BUILD)/wheel && rm -f $(BUILD)/wheel/*.whl
	cd bindings/python && SEALC2_LIB=$(CURDIR)/$(LIB) $(PYTHON) -c 'import wheel_backend; print("build/wheel/" + wheel_backend.build_wheel("$(CURDIR)/$(BUILD)/wheel"))'

# The tests from an installed wheel, in an empty environment of each interpreter.
test-wheel: wheel
	SEALC2_PARAMS= bindings/python/tests/wheel.sh $(BUILD)/wheel/*.whl

install: all
	install -d "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(PREFIX)/lib/pkgconfig" "$(DESTDIR)$(PREFIX)/include"
	install -m 755 $(CLI) "$(DESTDIR)$(PREFIX)/bin/"
	install -m 755 $(LIB) $(BUILD)/libsealc2-s2.so $(BUILD)/libsealc2-s2cuzk.so "$(DESTDIR)$(PREFIX)/lib/"
	install -m 644 include/sealc2.h include/sealc2_ffi.h include/sealc2_s2.h "$(DESTDIR)$(PREFIX)/include/"
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' bindings/c/sealc2.pc.in > "$(DESTDIR)$(PREFIX)/lib/pkgconfig/sealc2.pc"

clean:
	rm -rf $(BUILD) $(FATBIN)
