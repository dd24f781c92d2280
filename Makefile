# make help lists the targets. Each sets up what it needs.

.DEFAULT_GOAL := help
.PHONY: help demo test test-long stages long-stages plugin fuzz mutants style bench bench-cache bench-pair docs fixtures
MAKEFLAGS += --no-print-directory
SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c

CARGO_TARGET_DIR ?= target
export CARGO_TARGET_DIR
CLEARLANE := $(CARGO_TARGET_DIR)/release/clearlane
OUT ?= runs/demo
# A site's own fabric and tables, and the hosts that many write to; without FABRIC the shipped site.
SITE := fixtures/site/site
FABRIC ?=
LFT ?=
HOT ?= $(if $(FABRIC),,storage01)
DEMO := '$(or $(FABRIC),$(SITE).ibnetdiscover)' \
	$(foreach lft,$(if $(FABRIC),$(LFT),$(SITE).dump_fts),--lft '$(lft)') \
	$(foreach host,$(HOT),--hot '$(host)')

help:
	@echo "make demo       what is wrong with the shipped site, who suffers, and what would help"
	@echo "                make demo FABRIC=fabric.txt LFT=lfts.txt HOT=storage01   the same on"
	@echo "                your own files; without LFT= an engine fills the tables"
	@echo "make plugin     the routing engine clearlane for a stock OpenSM: docs/opensm-plugin.md"
	@echo "make test       style, the report page, cargo test, the tests against OpenSM, ibsim, ibdmchk"
	@echo "                and Chromium, and every reader's corpus replayed and fuzzed for seconds;"
	@echo "                STAGES=\"build pytest\" for some stages (scripts/test-stages)"
	@echo "make test-long  what takes a minute and more, every experiment that README or docs quote, every"
	@echo "                reader fuzzed for half a minute; STAGES= as above"
	@echo "make fuzz       every reader fuzzed for ten minutes; FUZZ_SECONDS=n for n seconds each"
	@echo "make mutants    the code broken in one place at a time: every mutant has to fail a test;"
	@echo "                MUTANTS=\"sim round-robin …\" for those of a crate or by name, JSON=file"
	@echo "make style      cargo fmt --check and clippy"
	@echo "make bench      time the simulator: packet-hops per CPU second, instructions per hop, memory"
	@echo "make bench-cache   instructions, cache misses and mispredicts per packet-hop, by callgrind"
	@echo "make bench-pair REV=commit   this tree's speed beside that commit's, in turns;"
	@echo "                ROWS=\"torus-8x8 …\" for some rows, RUNS=n pairs (5), JSON=file"
	@echo "make docs       remake docs/reference from the program's own registries"
	@echo "make fixtures   remake fixtures/site with the real tools"

demo:
	@scripts/setup build
	@test -x $(CLEARLANE) || { echo "building; the first time this takes some minutes"; \
		cargo build --release -p clearlane; }
	@cargo build --release --quiet -p clearlane
	@# Exit code 1 is what it has found.
	@$(CLEARLANE) diagnose $(DEMO) --output $(OUT) --force || test $$? -eq 1
	@echo "program: $$(realpath $(CLEARLANE))"
	@echo "report: file://$$(realpath $(OUT))/report.html"

plugin:
	@scripts/setup plugin
	@scripts/plugin release

# All stages are run whatever fails, and the last line says which failed.
STAGES ?=
FAILED = $(CARGO_TARGET_DIR)/test-stages-failed
# Until the script begins, the file says that no stage has begun. Then it says what failed.
begin = mkdir -p $(CARGO_TARGET_DIR) && echo "no stage has begun" >$(FAILED)
test: stages
	$(if $(wildcard $(FAILED)),$(error failed: $(file <$(FAILED))))
stages:
	@scripts/setup test
	@$(begin)
	@# A command alone, so that what ends make ends the stages. What failed is in the file.
	-@scripts/test-stages $(STAGES)

# Tests of a minute and more. `make test` does not run them.
test-long: long-stages
	$(if $(wildcard $(FAILED)),$(error failed: $(file <$(FAILED))))
long-stages:
	@scripts/setup test
	@$(begin)
	-@scripts/test-stages $(or $(STAGES),build long-cargo long headlines fuzz-long)

# Long enough to find what seconds do not; what it learns stays in the target folder.
FUZZ_SECONDS ?= 600
fuzz:
	@scripts/setup test
	@scripts/fuzz $(FUZZ_SECONDS)

MUTANTS ?=
mutants:
	@scripts/setup test
	@scripts/python scripts/mutants $(MUTANTS) $(if $(JSON),--json '$(JSON)')

style:
	@scripts/setup build
	@cargo fmt --all --check
	@cargo fmt --manifest-path fuzz/Cargo.toml --all --check
	@# Modules that a macro declares are not found by cargo fmt.
	@rustfmt --edition 2024 --check $(wildcard crates/congestion/src/mechanisms/*.rs \
		crates/congestion/src/mechanisms/*/mod.rs crates/workload/src/programs/*.rs)
	@# Where there is an MPI to build against, that part too.
	@cargo clippy --workspace --all-targets --quiet $$(command -v mpicc >/dev/null && \
		echo --features clearlane/mpi) -- -D warnings

# Built beside the program, the bench takes what `make demo` has built: alone it would ask for
# libraries with other features, and the whole product would be compiled again.
BUILT_BENCH := cargo build --release --quiet -p clearlane -p clearlane-bench
BENCH := $(CARGO_TARGET_DIR)/release/clearlane-bench
bench:
	@scripts/setup build
	@command -v valgrind >/dev/null || scripts/setup test
	@$(BUILT_BENCH)
	@$(BENCH) --instructions --out $(CARGO_TARGET_DIR)/bench.json

ROWS ?=
bench-cache:
	@scripts/setup build
	@command -v valgrind >/dev/null || scripts/setup test
	@$(BUILT_BENCH)
	@$(BENCH) --cache $(ROWS) --out $(CARGO_TARGET_DIR)/bench-cache.json

REV ?=
RUNS ?= 5
JSON ?=
bench-pair:
	@test -n '$(REV)' || { echo "say which commit to compare with: make bench-pair REV=…"; exit 2; }
	@scripts/setup build
	@scripts/bench-pair '$(REV)' $(ROWS) --runs $(RUNS) $(if $(JSON),--json '$(JSON)')

docs:
	@scripts/setup build
	@cargo run --quiet -p clearlane -- docs --output docs/reference --force

fixtures:
	@scripts/setup test
	@scripts/make-site fixtures/site
