# `make` takes a fresh clone to a report; `make help` lists the rest.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready
# Snakemake starts stages with the `python` it finds first.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: demo paper test test-all lint bench clean help
.DEFAULT_GOAL := demo

demo: $(READY) ## run the demo on the bundled corpus and write its report
	$(MAKE) --no-print-directory run CONFIG=config/config.yaml NAME=demo

paper: $(READY) ## run the full text8 experiment (downloads 31 MB)
	$(MAKE) --no-print-directory run CONFIG=config/text8.yaml NAME=text8

.PHONY: run
run: $(READY)
	snakemake --configfile $(CONFIG) --quiet host reason rules
	snakemake --configfile $(CONFIG) --quiet all --report results/$(NAME)/report.html
	@echo; cat results/$(NAME)/tables/table1.txt; echo
	@echo "report: results/$(NAME)/report.html"

test: $(READY) ## run the tests
	python -m pytest -m "not slow"

test-all: $(READY) ## run all tests, the slow ones too
	python -m pytest

lint: $(READY) ## check style: ruff, snakefmt, snakemake --lint
	ruff check workflow tests benchmarks examples
	ruff format --check workflow tests benchmarks examples
	snakefmt --check Snakefile workflow
	snakemake --lint

bench: $(READY) ## measure speed and interval coverage
	python benchmarks/evaluator.py
	python benchmarks/coverage.py

clean: ## delete results and the environment
	rm -rf results .snakemake .venv

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

$(READY): requirements.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and "Python 3.11 is needed: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@
