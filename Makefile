# Two commands matter: `make run` and `make test`. Both set up .venv from requirements.lock first.
# Packages are installed uncompiled: each is compiled at its first import, and must be kept then, or
# every process compiles TensorFlow anew, in 25 s.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LOWEST := .venv-lowest
JOBS ?= 2
MARKS ?= not ci and not slow and not gpu
# Files in the order that tests/conftest.py gives them.
SPREAD := -n $(JOBS) --dist loadfile --no-loadscope-reorder
OUT ?= runs/quickstart

.PHONY: run test test-ci smoke test-all test-lowest peers lint types docs results pages check-pages setup clean

setup: $(STAMP)

# The stamp is written last, so an interrupted installation is started again. Python compiles what it
# imports: to compile all that is installed takes half of the time, and most of it is never imported.
# The lock is complete, so that there is nothing to resolve, and pip installs its parts side by side.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else f"Python 3.11 to 3.13 is needed, found {v[0]}.{v[1]}: make PYTHON=python3.12")'
	@echo "1/3 Creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@echo "2/3 Installing $$(grep -c '==' requirements.lock) packages into it, about a minute the first time"
	@rm -f $(VENV)/lock.* && split -l 16 requirements.lock $(VENV)/lock.
	@ls -r $(VENV)/lock.* | xargs -P $(JOBS) -n 1 $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps -r
	@echo "3/3 Installing neucrowd-tf"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

run: $(STAMP)
	$(BIN)/python run_experiment.py --dataset=breast_cancer --method=neucrowd,mv_lr --output_dir=$(OUT) --export --resume

# Quick: what a change breaks most often.
test: $(STAMP)
	$(BIN)/python -m pytest $(SPREAD) -m "$(MARKS)" tests

# What `make test` leaves out and `.ci/run` runs.
test-ci: $(STAMP)
	$(BIN)/python -m pytest $(SPREAD) -m "ci and not slow and not gpu" tests

# Every registered method once, tiny; always from the beginning. Predictions are compared with the
# stored ones (tests/digests.py).
smoke: $(STAMP)
	rm -rf runs/smoke
	$(BIN)/python run_experiment.py --suite=smoke --output_dir=runs/smoke --jobs=$(JOBS)
	$(BIN)/python -m tests.digests runs/smoke

test-all: $(STAMP)
	$(BIN)/python -m pytest $(SPREAD) tests
	$(MAKE) smoke test-lowest

# The lowest end of pyproject.toml's ranges, in an environment of its own.
test-lowest: $(LOWEST)/.installed
	$(LOWEST)/bin/python -m pytest -n $(JOBS) --dist loadfile -m "not slow and not gpu" tests

$(LOWEST)/.installed: requirements-lowest.lock pyproject.toml
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-lowest.lock
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# What other packages compute from the same input; those that are not installed are named.
peers: $(STAMP)
	$(BIN)/python -m benchmarks.peers --output=results/peers.csv

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy neucrowd_tf baselines data reproduction benchmarks run_experiment.py

# The site in build/site: pages, RESULTS.md and the API reference. A broken link is an error.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

# RESULTS.md and docs/results/ from claims.toml and the tables in results/.
results: $(STAMP)
	$(BIN)/python -m reproduction.claims --write
	$(BIN)/python -m reproduction.page results RESULTS.md

# Every generated page.
pages: results
	for name in index flags data_formats parameters equations deviations notebooks; do \
	  $(BIN)/python docs/$$name.py || exit 1; done

# Generated pages are current, links lead somewhere, and words and sentences are readable.
check-pages: $(STAMP)
	$(BIN)/python -m pytest tests/test_pages.py

clean:
	rm -rf $(VENV) $(LOWEST) build *.egg-info
