VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
READY := $(VENV)/ready
export PIP_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help check test test-all bench format constraints clean

help:  ## What there is to make
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

check: $(READY)  ## Format, lint, types and unit tests: before every commit
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest tests/unit -q

test: $(READY)  ## All tests but the slow ones, on DuckDB files, SQLite and a PostgreSQL that is started for them
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

test-all: $(READY)  ## Every test, as CI runs them
	$(BIN)/pytest -n 2 --dist worksteal

bench: $(READY)  ## Ours and DuckDB's extension side by side
	$(BIN)/python -m tests.bench

format: $(READY)  ## Format the code and mend what ruff can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

constraints: $(READY)  ## Write the installed versions to constraints.txt
	{ head -1 constraints.txt; $(BIN)/pip freeze --exclude-editable; grep -E '^(hatchling|trove)' constraints.txt; } | sort -fu -o constraints.txt

clean:  ## Remove the environment and caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache

$(READY): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "Python is missing: install Python 3.11 or newer."; exit 1; }
	@test -x $(BIN)/python || { echo "Making the environment in $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	$(BIN)/pip install --quiet --progress-bar off -e '.[dev]'
	@touch $@
