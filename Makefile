# Every target sets up what it needs: a fresh clone and `make demo` are enough.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# A file of tests is one process's, for what its tests share.
PARALLEL := -n auto --maxprocesses 4 --dist loadfile

.PHONY: help setup demo test check docs bench clean

help:            ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

setup: $(STAMP)  ## create .venv and install crosstail with its development tools

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "crosstail needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) (about three minutes the first time) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: setup      ## train ERM and BoDA on synthetic digits and write demo/report.html, at most 4 minutes
	$(BIN)/crosstail demo --out demo

test: setup      ## format, lint, types, import layers and every test: what CI runs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest $(PARALLEL)

check: setup     ## format the code in place, then everything that `make test` does but the slow tests
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/mypy
	$(BIN)/python -m pytest $(PARALLEL) -m 'not slow'

docs: setup      ## the documentation as a site that needs no network: site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

bench: setup     ## speed and memory against stated peers, as ratios
	$(BIN)/python -m bench

clean:           ## remove .venv and everything that the other targets made
	rm -rf $(VENV) demo build site .pytest_cache .mypy_cache .ruff_cache .hypothesis
