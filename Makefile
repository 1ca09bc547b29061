# `make` alone lists what there is. Everything runs in a virtual environment of the checkout's own.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Which of the brokers the tests that need one may use.
BROKERS ?= redis or rabbitmq
# Each has an embedded server of its own and waits for it now and then: three use two processors.
TEST_PROCESSES ?= 3
# Tests that start processes mostly wait for them, so more run at once; those that take longest begin.
WAITING := -n $$(($(TEST_PROCESSES) + 1)) --dist loadfile --no-loadscope-reorder
MARKED := grep --recursive --files-with-matches --include='test_*.py'
# How many requests `make fuzz` makes to each operation, in each of its phases.
FUZZ ?= 300
# Which requests it draws.
FUZZ_SEED ?= 1

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Products of NumPy and PyTorch in the tests are small: on cores that are shared, each thread would mostly wait for the others.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1

# An image may forbid compiled modules to be kept. Then every process of the tests, and there are hundreds, compiles all again.
unexport PYTHONDONTWRITEBYTECODE

SQL := service/venn_admit/store/sql migrations/baseline $(wildcard migrations/tables) migrations/routines

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

.PHONY: demo
demo: $(VENV)/.installed ## all steps on the bundled data, in a minute or two
	$(BIN)/venn-admit demo

.PHONY: test
test: $(VENV)/.dev ## lint, and beside it all tests that need nothing but this process and a database
	+$(MAKE) --no-print-directory --jobs 3 lint-types lint-others test-alone

.PHONY: test-alone
test-alone: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist worksteal

.PHONY: test-processes
test-processes: $(VENV)/.dev ## the tests that start workers, services and the program as processes of their own
	$(BIN)/python -m pytest $(WAITING) -m "processes and not servers and not wheel" $$($(MARKED) 'mark\.processes' \
		tests/faults tests/workers tests/docs tests/cli tests | awk '!seen[$$0]++')

.PHONY: test-servers
test-servers: $(VENV)/.dev ## the tests that need Redis or RabbitMQ; BROKERS=redis for one of them
	$(BIN)/python -m pytest $(WAITING) -m "servers and ($(BROKERS))" tests/faults tests/workers

.PHONY: test-browser
test-browser: $(VENV)/.dev ## every page and form in Chromium, which must be installed, or named by VENN_ADMIT_TEST_CHROMIUM
	$(BIN)/python -m pytest -m browser tests/web/browser

.PHONY: test-wheel
test-wheel: $(VENV)/.dev ## the tutorials and guides as a new user has them: a wheel and what they install; takes minutes
	$(BIN)/python -m pytest -m wheel tests/docs tests/client

.PHONY: coverage
coverage: $(VENV)/.dev ## which lines and branches the tests run, subprocesses included
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n $(TEST_PROCESSES) --dist worksteal \
		-m "not servers and not wheel and not browser"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

.PHONY: soak
soak: $(VENV)/.dev ## 200 kills and other faults, counted, then all at once; SOAK="--kills 50 --broker redis://..."
	$(BIN)/python -m tests.faults $(SOAK)
	VENN_ADMIT_TEST_SOAK_SECONDS=120 $(BIN)/python -m pytest tests/workers/test_concurrency.py

.PHONY: fuzz
fuzz: $(VENV)/.dev ## thousands of requests, made from the OpenAPI document; FUZZ=1000 for as many of each operation
	VENN_ADMIT_TEST_FUZZ_EXAMPLES=$(FUZZ) VENN_ADMIT_TEST_FUZZ_SEED=$(FUZZ_SEED) \
		$(BIN)/python -m pytest -rP tests/stress/test_openapi.py

.PHONY: lint
lint: $(VENV)/.dev ## style, types, import directions, SQL, what migrations lock, wording
	+$(MAKE) --no-print-directory --jobs 2 --output-sync lint-types lint-others

# Types take about as long as all else.
.PHONY: lint-types lint-others
lint-types:
	$(BIN)/mypy

lint-others: $(VENV)/.sql
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo
	$(BIN)/python docs/structure.py | tail -n 1
	$(BIN)/alembic upgrade head --sql | $(BIN)/squawk
	$(BIN)/python -m tests.docs.wording

.PHONY: format
format: $(VENV)/.dev ## put Python and SQL in form
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/sqlfluff fix $(SQL)

.PHONY: docs
docs: $(VENV)/.dev ## the documentation as a site, in build/site; a broken link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

.PHONY: picture
picture: $(VENV)/.dev ## draw the README's picture again, from the bundled data
	home=$$(mktemp -d); trap 'rm -rf "$$home"' EXIT; \
		env -u VENN_ADMIT_DATABASE_URL VENN_ADMIT_HOME="$$home/venn" $(BIN)/python -m docs.generate.readme_picture

.PHONY: bench
bench: $(VENV)/.bench ## measure; see benchmarks/
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks

.PHONY: install
install: $(VENV)/.dev ## the program and the tools to develop it, in .venv

.PHONY: clean
clean: ## remove what was made here, the virtual environment included
	rm -rf $(VENV) build dist demo-report .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps below are newer than what they were made from.

$(VENV)/.pip: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "needed is Python 3.11 or newer: make PYTHON=python3.11 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade --constraint constraints.txt pip
	touch $@

# Three fifths of what is installed are never imported, and the rest is compiled when it first is.
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt

$(VENV)/.installed: $(VENV)/.pip pyproject.toml
	$(INSTALL) --build-constraint constraints.txt --editable .
	touch $@

$(VENV)/.bench: $(VENV)/.installed
	$(INSTALL) --group bench
	touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(INSTALL) --group dev
	touch $@

# Reading SQL takes longest of what lint does, types aside: only files that changed since all were right are read again.
$(VENV)/.sql: $(VENV)/.dev pyproject.toml $(shell find $(SQL) -name '*.sql')
	$(BIN)/sqlfluff lint $(if $(filter-out %.sql,$?),$(SQL),$?)
	touch $@
