VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
READY := $(VENV)/ready
CLASSES := $(VENV)/classes
# DuckDB 1.5 with its ducklake extension, which judges what DuckDB reads of ours.
JUDGE := $(CURDIR)/$(VENV)/judge
# `make test DUCKDB=1.5`: the adapter itself on the DuckDB of the judge, in place of the newest.
ifeq ($(DUCKDB),1.5)
export PYTHONPATH := $(JUDGE)
endif
export PIP_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo java check test test-all test-duckdb-1.5 test-seeds bench bench-spark bench-changes bench-maintenance bench-tenants format constraints clean

help:  ## What there is to make
	@grep -hE '^[a-z0-9.-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

demo: java $(READY)  ## Build the shop of integration_project on a lake of its own, and show what DuckDB reads there
	@rm -rf integration_project/shop.ducklake*
	cd integration_project && SHOP_LAKE=$(CURDIR)/integration_project/shop.ducklake ../$(BIN)/dbt build --profiles-dir .
	@PYTHONPATH=$(JUDGE) $(BIN)/python integration_project/show.py

java:
	@test -x "$${JAVA_HOME:-/nonexistent}/bin/java" || command -v java >/dev/null || { \
		echo "Java is missing: install 17 or newer (Debian, Ubuntu: apt-get install openjdk-17-jre-headless)."; exit 1; }

check: $(READY)  ## Format, lint, types and unit tests: before every commit
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest tests/unit -q

# dbt's suites share a project within a class, so a class stays with one worker.
SUITES := tests/functional/adapter -n 2 --dist loadscope

test: java $(CLASSES)  ## All tests but the slow ones, on DuckDB files, SQLite and a PostgreSQL that is started for them
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow" --ignore tests/functional/adapter
	$(BIN)/pytest $(SUITES)

test-all: java $(CLASSES)  ## The slow tests too, as CI runs them, and dbt's suites on PostgreSQL
	$(BIN)/pytest -n 2 --dist worksteal --ignore tests/functional/adapter
	$(BIN)/pytest $(SUITES)
	DBT_DUCKLAKE_TEST_LAKE=postgres $(BIN)/pytest $(SUITES)

test-duckdb-1.5: java $(CLASSES)  ## What goes through DuckDB's client, with DuckDB 1.5; all of it: make test DUCKDB=1.5
	PYTHONPATH=$(JUDGE) $(BIN)/pytest -n 2 --dist worksteal tests/unit tests/functional/test_duckdb_versions.py \
		tests/functional/test_opening.py tests/functional/test_integration_project.py \
		tests/interop/test_reading.py tests/interop/test_writing.py

test-seeds: java $(CLASSES)  ## The tests of random lakes and of concurrent runs with all their seeds and rounds: hours
	DBT_DUCKLAKE_TEST_SEEDS=all $(BIN)/pytest -n 2 --dist worksteal tests/interop tests/concurrency

bench: $(READY)  ## The lake client and DuckDB's extension side by side
	$(BIN)/python -m tests.bench

bench-spark: java $(READY)  ## dbt with this adapter and with dbt-spark side by side, and our scan and write against Spark's own
	$(BIN)/python -m tests.bench.spark

bench-changes: java $(CLASSES)  ## Merge, append and delete: beside dbt-duckdb on DuckLake, rewriting with dbt-spark, and raw Spark
	$(BIN)/pip install --quiet --progress-bar off -e '.[bench]'
	$(BIN)/python -m tests.bench.changes

bench-maintenance: java $(CLASSES)  ## Compaction and expiry: beside the extension, and Spark reading and writing the same bytes
	$(BIN)/python -m tests.bench.maintenance

bench-tenants: java $(CLASSES)  ## 10, 100 and 1,000 tenants in one PostgreSQL, in both layouts
	$(BIN)/python -m tests.bench.tenants

format: $(READY)  ## Format the code and mend what ruff can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

constraints: $(READY)  ## Write the installed versions to constraints.txt
	{ head -1 constraints.txt; $(BIN)/pip freeze --exclude-editable; grep -E '^(hatchling|trove)' constraints.txt; } | sort -fu -o constraints.txt

clean:  ## Remove the environment and caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache

$(READY): pyproject.toml constraints.txt tests/judge-requirements.txt
	@command -v $(PYTHON) >/dev/null || { echo "Python is missing: install Python 3.11 or newer."; exit 1; }
	@test -x $(BIN)/python || { echo "Making the environment in $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	@echo "Installing what constraints.txt pins; this takes a minute or two the first time ..."
	$(BIN)/pip install --quiet --progress-bar off -e '.[dev]'
	@rm -rf $(JUDGE)
	PIP_CONSTRAINT= $(BIN)/pip install --quiet --progress-bar off --no-deps --target $(JUDGE) -r tests/judge-requirements.txt
	@touch $@

# Every test that starts a Spark of its own starts it sooner so.
$(CLASSES): $(READY)
	@echo "Preparing Spark's classes; this takes half a minute ..."
	@$(BIN)/python -c "from dbt.adapters.ducklake.prepared import make_class_archive as make; make()"
	@touch $@
