# The short commands. CMake does the work; its presets are in CMakePresets.json.

JOBS ?= $(shell nproc)

.PHONY: all run setup test format format-check campaign mutants coverage spec clean help

## make               build the release: build/horkos
all:
	@command -v cmake >/dev/null && command -v ninja >/dev/null || \
	    { echo "cmake or ninja is missing: run 'make setup' first" >&2; exit 1; }
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS)

## make run           setup, build, and a cluster of three nodes until Ctrl-C; RUN_ARGS='--nodes 5'
RUN_ARGS ?=
run: setup
	@$(MAKE) --no-print-directory all
	@build/horkos dev $(RUN_ARGS)

## make setup         install the packages of packages.txt (Debian 12; does nothing if all are there)
setup:
	@scripts/setup

## make test          setup, build and run every test of the release build
test: setup
	@$(MAKE) --no-print-directory all
	ctest --preset release --parallel $(JOBS)

## make format        format all C code
format:
	@scripts/format

## make format-check  fail if `make format` would change anything
format-check:
	@scripts/format --check

## make campaign      the long runs: seeds, explorer, mutants, torture, stress (see scripts/campaign)
campaign: all
	@scripts/campaign

## make mutants       switch protocol rules off one by one; each must be caught
mutants:
	@scripts/ci-mutants

## make coverage      what the tests and the simulator reach of the protocols' code (needs gcovr)
coverage:
	@scripts/coverage

## make spec          check the TLA+ models; TLC=FILE names tla2tools.jar, SPEC='NAME...' picks some
spec:
	@TLC='$(TLC)' scripts/spec $(SPEC)

## make clean         remove all that was built
clean:
	rm -rf build

## make help          this list
help:
	@sed -n 's/^## //p' Makefile
