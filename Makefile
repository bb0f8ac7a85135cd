# `make demo` and `make test` do everything on a fresh machine with Python 3.11 or newer.
PYTHON ?= python3
VENV   := .venv
BIN    = $(VENV)/bin
STAMP  := .venv/.installed
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test test-full test-newest lint generate docs gallery bench bench-peers clean
help:
	@echo "make demo | test | test-full | test-newest | lint | generate | docs | gallery | bench | bench-peers | clean"

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(STAMP)
	$(BIN)/credo demo --out demo

# Most of the tests' time is compilation of small programs that run for milliseconds: XLA is told not to polish them, and
# which of its flags help depends on its version (tools/xla_flags.py). `make test-full` leaves it at its defaults. One file
# stays on one worker, so that its programs are compiled once, and each worker has one thread for scikit-learn.
QUICK = OMP_NUM_THREADS=1 JAX_DISABLE_MOST_OPTIMIZATIONS=1 XLA_FLAGS="$$($(BIN)/python tools/xla_flags.py)"
test: $(STAMP)
	$(QUICK) $(BIN)/python -m pytest -n 2 --dist loadfile -m "not full" --durations=15

# The same with the newest version of everything, in an environment of its own, on the newest Python that is tested.
NEWEST = $(shell for python in python3.13 $${PYENV_ROOT:-$$HOME/.pyenv}/versions/3.13.*/bin/python python3.12 $(PYTHON); \
	do $$python -c "" 2>/dev/null && echo $$python && break; done)
test-newest: VENV := .venv-newest
test-newest:
	test -x $(BIN)/python || $(NEWEST) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade --upgrade-strategy eager --editable '.[dev]'
	$(BIN)/python -m pip list | grep -iE "^(jax|jaxlib|flax|numpy|arviz) "
	$(QUICK) $(BIN)/python -m pytest -n 2 --dist loadfile -m "not full" --durations=15

test-full: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal

# Without ruff's cache: it does not notice that a new folder changes which imports are the project's own.
lint: $(STAMP)
	$(BIN)/ruff check --no-cache src tests benchmarks examples tools
	$(BIN)/ruff format --check src tests benchmarks examples tools
	$(BIN)/mypy

# Pages that are made from code: the API reference, tables, texts and code of the gallery.
generate: $(STAMP)
	$(BIN)/python tools/generate.py

# The site, into site/: strict, so that a dead link or a page without a place fails.
$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch $@

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# Runs every example of the gallery at full size: some minutes.
gallery: $(STAMP)
	$(BIN)/python tools/gallery.py

# Peers live in their own environment, so that the product never depends on them. One of them brings a torchvision that is
# built for another torch; torchmetrics imports it where it is there, and pytabkit then fails.
bench-peers:
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet jax numpyro blackjax optax torch==2.13.0 pyro-ppl laplace-torch posteriors botorch \
	  catboost lightgbm xgboost ngboost scikit-learn pandas pyarrow pytabkit gpytorch configspace seaborn
	.venv-peers/bin/python -m pip uninstall --quiet --yes torchvision

bench: $(STAMP)
	$(BIN)/python -m benchmarks speed --peers .venv-peers/bin/python

clean:
	rm -rf $(VENV) .venv-newest .venv-peers build dist demo site
