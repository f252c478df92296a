# Each target is self-sufficient on a fresh machine with Python 3.11 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Python compiles what is imported when it is imported; to compile all that is installed takes longer than to install it.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
STAMPS := $(VENV)/.stamps

# Where sums over many responses lead to choices; `make test-kernels TESTS='-m "not slow"'` runs fewer than all tests.
NUMERICAL := tests/numerics tests/irt tests/selection tests/planning tests/estimation/test_regressions.py \
	tests/calibration/variational tests/scaling/pretraining
TESTS ?=

.PHONY: quickstart test test-slow test-harnesses test-browser test-clusters test-kernels test-second-kernel attack mutations lint bench rivals rival-methods docs release-check clean

$(STAMPS)/venv:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "itembank needs Python 3.11 or newer; run make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

# One stamp for each set of extras; a change of the dependencies installs again.
$(STAMPS)/%: $(STAMPS)/venv pyproject.toml constraints.txt
	$(PIP) -e '.[$*]'
	@touch $@

quickstart: $(STAMPS)/report
	$(BIN)/itembank quickstart -o quickstart

# A worker for each core: more threads than that would only wait for each other.
test test-slow test-kernels test-second-kernel mutations: export OMP_NUM_THREADS = 1
test test-slow test-kernels test-second-kernel mutations: export OPENBLAS_NUM_THREADS = 1
test test-slow test-kernels test-second-kernel mutations: export POLARS_MAX_THREADS = 1

# Tests start many processes: where nothing compiled is kept, each compiles the package anew.
test test-slow test-kernels test-second-kernel: export PYTHONDONTWRITEBYTECODE =

# The tests of a module share what their fixtures make, so one worker runs them all.
test: $(STAMPS)/test
	$(BIN)/python -m pytest -m "not slow and not harness and not browser" -n auto --dist loadscope

test-slow: $(STAMPS)/test
	$(BIN)/python -m pytest -m "slow and not harness and not browser" -n auto

# Harnesses bring a gigabyte of dependencies, so that they have an environment of their own.
HARNESSES := .venv-harnesses
$(HARNESSES)/.made: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(HARNESSES)
	$(HARNESSES)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,lm-eval,inspect,hub]'
	@touch $@

# The oldest release that is served, beside the newest: torch, which it imports, is replaced by a stand-in, and tests
# that call functions and arguments of newer releases are left out.
$(HARNESSES)/.oldest: $(HARNESSES)/.made
	$(HARNESSES)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
		--target $(HARNESSES)/oldest 'lm_eval==0.4.5'
	@touch $@

test-harnesses: export OMP_NUM_THREADS = 1
test-harnesses: export OPENBLAS_NUM_THREADS = 1
test-harnesses: $(HARNESSES)/.oldest
	$(HARNESSES)/bin/python -m pytest -m harness $(TESTS)
	PYTHONPATH=$(HARNESSES)/oldest $(HARNESSES)/bin/python -m pytest -p tests.harnesses.lm_eval.without_torch \
		tests/harnesses/lm_eval/test_same_prompts.py tests/harnesses/lm_eval/test_run_command.py \
		tests/harnesses/lm_eval/test_bank_prompts.py \
		-k "not ranks and not parts_of and not by_the_group"

# Chromium is the system's (Debian: apt-get install chromium); without one the tests say so and skip.
test-browser: $(STAMPS)/test $(STAMPS)/browser
	$(BIN)/python -m pytest -m browser tests/browser $(TESTS)

# Dask and Ray, each with two workers on this machine.
test-clusters: $(STAMPS)/test $(STAMPS)/clusters
	$(BIN)/python -m pytest tests/clusters $(TESTS)

# `make attack ITEMBANK_ATTACKS=8 ITEMBANK_ATTACKS_SEED=3` makes fewer attacks, and others than seed 0.
attack: export ITEMBANK_ATTACKS ?= 100
attack: $(STAMPS)/test
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -m "" -rP tests/attacks

mutations: $(STAMPS)/test
	$(BIN)/python scripts/mutations.py

test-kernels: $(STAMPS)/test
	$(BIN)/python benchmarks/blas_kernels.py $(BIN)/python -m pytest -n auto $(TESTS)

test-second-kernel: $(STAMPS)/test
	$(BIN)/python benchmarks/blas_kernels.py --second $(BIN)/python -m pytest -m "not slow and not harness and not browser" -n auto $(NUMERICAL)

lint: $(STAMPS)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(STAMPS)/report
	$(BIN)/python -m benchmarks.speed_commands

# Methods of other papers, which the panel compares with: a package that brings methods to itembank as any can.
rival-methods: $(STAMPS)/rival-methods
$(STAMPS)/rival-methods: $(STAMPS)/report benchmarks/rivals/methods/pyproject.toml constraints.txt
	$(PIP) -e benchmarks/rivals/methods
	@touch $@

# Other tools have an environment of their own (2 GB with torch): what they need may differ from what itembank needs.
RIVALS := .venv-rivals
$(RIVALS)/.made: benchmarks/rivals/requirements.txt
	$(PYTHON) -m venv $(RIVALS)
	$(RIVALS)/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/rivals/requirements.txt
	@touch $@

rivals: $(STAMPS)/rival-methods $(RIVALS)/.made
	$(BIN)/python -m benchmarks.rivals --rival-python $(RIVALS)/bin/python

docs: $(STAMPS)/docs $(STAMPS)/report
	$(BIN)/python -m sphinx -W -q -b html docs docs/_build/html

release-check: $(STAMPS)/release
	$(BIN)/python scripts/release_check.py

clean:
	rm -rf $(VENV) $(HARNESSES) $(RIVALS) docs/_build build dist
