# `make demo` and `make test` do everything on a fresh machine with Python 3.11 or newer.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test test-full lint docs gallery bench bench-peers clean
help:
	@echo "make demo | test | test-full | lint | docs | gallery | bench | bench-peers | clean"

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(STAMP)
	$(BIN)/credo demo --out demo

# Most of the tests' time is compilation of small programs that run for milliseconds: XLA is told not to polish them, and
# to take its older code generator in one piece, which needs a third of the time. `make test-full` leaves it at its defaults. One file
# stays on one worker, so that its programs are compiled once, and each worker has one thread for scikit-learn.
QUICK := OMP_NUM_THREADS=1 JAX_DISABLE_MOST_OPTIMIZATIONS=1 XLA_FLAGS="--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
test: $(STAMP)
	$(QUICK) $(BIN)/python -m pytest -n 2 --dist loadfile -m "not full" --durations=15

test-full: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal

# Without ruff's cache: it does not notice that a new folder changes which imports are the project's own.
lint: $(STAMP)
	$(BIN)/ruff check --no-cache src tests benchmarks examples tools
	$(BIN)/ruff format --check src tests benchmarks examples tools
	$(BIN)/mypy

# The site, into site/: strict, so that a dead link or a page without a place fails.
$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch $@

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# Runs every example of the gallery at full size: some minutes.
gallery: $(STAMP)
	$(BIN)/python tools/gallery.py

# Peers live in their own environment, so that the product never depends on them.
bench-peers:
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet jax numpyro blackjax optax torch==2.13.0 pyro-ppl laplace-torch posteriors botorch

bench: $(STAMP)
	$(BIN)/credo benchmark speed --peers .venv-peers/bin/python

clean:
	rm -rf $(VENV) .venv-peers build dist demo site
