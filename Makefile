# Each target installs what it needs, so `make demo` works in a fresh clone.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Compiled files are kept, also where the environment says otherwise: tests start many processes.
export PYTHONDONTWRITEBYTECODE :=
# The tests of a file run in one process, because they share fixtures; tests/conftest.py orders the files.
PARALLEL := -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

.PHONY: help setup demo test check storm docs bench gpu-check fuzz mutants dist clean

help:            ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

setup: $(STAMP)  ## create .venv and install crosstail with its development tools

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "crosstail needs Python 3.11 or newer; specify one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) (about five minutes the first time) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: setup      ## train ERM and BoDA on synthetic digits and write demo/report.html, at most 4 minutes
	$(BIN)/crosstail demo --out demo

test: setup      ## run everything CI runs: format, lint, types and all tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest $(PARALLEL)

check: setup     ## format in place, then run `make test` without the slow tests
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/mypy
	$(BIN)/python -m pytest $(PARALLEL) -m 'not slow and not storm'

storm: setup     ## kill commands hundreds of times at random moments and fill disks; CI does so a few times
	$(BIN)/python -m pytest $(PARALLEL) -m storm -o junit_family=xunit1 --junitxml=build/storm.xml
	$(BIN)/python -m tests.storm build/storm.xml

docs: setup      ## build the documentation, readable offline: site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

bench: setup     ## measure speed and memory relative to reference implementations
	$(BIN)/python -m bench

gpu-check: setup ## check and time a GPU in ten minutes, and print a page to paste into an issue
	@$(BIN)/python -m studies.gpu_check

fuzz: setup      ## run 10,000 bad inputs through the command line; fails on a traceback, a hang or an unnamed file
	$(BIN)/python -m tests.fuzz

mutants: setup   ## change 120 operators and constants, one at a time, and count how many the tests notice: hours
	$(BIN)/python -m tests.fuzz.mutants

dist: setup      ## build dist/crosstail-VERSION.tar.gz and .whl
	$(BIN)/python -m build --no-isolation

clean:           ## remove .venv and everything the other targets created
	rm -rf $(VENV) demo build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
