# make            libsealc2.so and the sealc2 command, into build/
# make demo       prove a real 2 KiB sector through the Python binding (the first time, make its parameters)
# make test       all tests; also test-race, bench
# make wheel      a Python wheel with the library inside, into build/wheel/
# make install    PREFIX=/usr/local, DESTDIR= for packagers
#
# Needs Go, gcc, python3. SEALC2_PARAMS names the folder for development parameters, kept between clones.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

GO ?= go
PYTHON ?= python3
PREFIX ?= /usr/local
DESTDIR ?=
BUILD := build
LIB := $(BUILD)/libsealc2.so
CLI := $(BUILD)/sealc2

VERSION := $(shell sed -n 's/^\#define SEALC2_VERSION "\(.*\)"/\1/p' include/sealc2.h)
CACHE := $(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)/sealc2
SEALC2_PARAMS ?= $(CACHE)/params

# Go's build cache does not see the headers and the version script: their hash makes it look again.
FACE := $(shell cat include/*.h capi/*.h capi/exports.map | sha256sum | cut -c1-16)
FACE_CFLAGS := -O2 -g -DSEALC2_FACE=0x$(FACE)
# Go asks git for the revision, and fails where git refuses the folder.
GOFLAGS_BUILD := -trimpath -buildvcs=$(shell git status --porcelain >/dev/null 2>&1 && echo auto || echo false)

.PHONY: all lib cli params demo test vet test-go test-python test-race bench wheel install clean

all: lib cli

lib:
	@mkdir -p $(BUILD)
	CGO_ENABLED=1 CGO_CFLAGS="$(FACE_CFLAGS)" $(GO) build $(GOFLAGS_BUILD) -buildmode=c-shared \
	  -ldflags "-extldflags '-Wl,--version-script=$(CURDIR)/capi/exports.map -Wl,-soname,libsealc2.so'" -o $(LIB) ./capi
	@rm -f $(BUILD)/libsealc2.h # Go's own header; include/ has the real ones

cli:
	@mkdir -p $(BUILD)
	CGO_ENABLED=0 $(GO) build $(GOFLAGS_BUILD) -o $(CLI) ./bindings/cli

# Development parameters, made once for each content: the mark's name has the digest of what setup must give.
# $(1) shape, $(2) its name in tests/vectors/setup
define PARAMS_OF
.PHONY: params-$(1)
params-$(1): cli
	@mkdir -p "$$(SEALC2_PARAMS)"; mark="$$(SEALC2_PARAMS)/.made-$(1)-$$$$(sha256sum tests/vectors/setup/$(2).json | cut -c1-16)"; \
	exec 9> "$$(SEALC2_PARAMS)/.lock"; flock 9; \
	if [ ! -e "$$$$mark" ]; then \
	  echo "making $(1) development parameters in $$(SEALC2_PARAMS), once"; \
	  $(CLI) setup --shape $(1) --out "$$(SEALC2_PARAMS)" 9>&-; touch "$$$$mark"; \
	fi
endef
$(eval $(call PARAMS_OF,2KiB,porep-2k))
$(eval $(call PARAMS_OF,16KiB,porep-16k))
$(eval $(call PARAMS_OF,32KiB,porep-32k))
params: params-2KiB params-16KiB params-32KiB

demo: all params-2KiB
	@SEALC2_LIB=$(CURDIR)/$(LIB) $(PYTHON) bindings/python/examples/demo.py "$(SEALC2_PARAMS)"

TEST_ENV := SEALC2_LIB=$(CURDIR)/$(LIB) SEALC2_PARAMS="$(SEALC2_PARAMS)" CGO_CFLAGS="$(FACE_CFLAGS)"

test: vet test-go test-python

vet:
	CGO_CFLAGS="$(FACE_CFLAGS)" $(GO) vet ./...

test-go: all params
	$(TEST_ENV) $(GO) test -timeout 40m ./...

test-python: lib params-2KiB
	$(TEST_ENV) $(PYTHON) -m unittest discover bindings/python/tests

test-race: lib
	CGO_CFLAGS="$(FACE_CFLAGS)" SEALC2_LIB=$(CURDIR)/$(LIB) $(GO) test -race -short -timeout 60m ./...

bench:
	CGO_CFLAGS="$(FACE_CFLAGS)" $(GO) test -run '^$$' -bench . -benchtime 3x ./engine/...

wheel: lib
	@mkdir -p $(BUILD)/wheel
	cd bindings/python && SEALC2_LIB=$(CURDIR)/$(LIB) $(PYTHON) -c 'import wheel_backend; print("build/wheel/" + wheel_backend.build_wheel("$(CURDIR)/$(BUILD)/wheel"))'

install: all
	install -d "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(PREFIX)/lib/pkgconfig" "$(DESTDIR)$(PREFIX)/include"
	install -m 755 $(CLI) "$(DESTDIR)$(PREFIX)/bin/"
	install -m 755 $(LIB) "$(DESTDIR)$(PREFIX)/lib/"
	install -m 644 include/sealc2.h include/sealc2_ffi.h "$(DESTDIR)$(PREFIX)/include/"
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' bindings/c/sealc2.pc.in > "$(DESTDIR)$(PREFIX)/lib/pkgconfig/sealc2.pc"

clean:
	rm -rf $(BUILD)
