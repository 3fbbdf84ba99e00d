# `make` takes a fresh clone to a report; `make help` lists the rest.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready
# Snakemake starts stages with the `python` it finds first.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: demo paper existing test test-all test-cluster stress lint bench clean help
.DEFAULT_GOAL := demo

demo: $(READY) ## run the demo on the bundled corpus and write its report
	$(MAKE) --no-print-directory run CONFIG=config/config.yaml NAME=demo

paper: $(READY) ## run the full text8 experiment (downloads 31 MB)
	$(MAKE) --no-print-directory run CONFIG=config/text8.yaml NAME=text8

existing: $(READY) ## show what there is of a run that is not finished; name it with CONFIG= and NAME=
	$(MAKE) --no-print-directory run SNAKEFILE=workflow/render_existing.smk

CONFIG ?= config/config.yaml
NAME ?= demo
SNAKEFILE ?= Snakefile
RESULTS = results/$(NAME)

.PHONY: run
run: $(READY)
	snakemake --snakefile $(SNAKEFILE) --configfile $(CONFIG) --quiet host reason rules
	snakemake --snakefile $(SNAKEFILE) --configfile $(CONFIG) --quiet all --report $(RESULTS)/report.html \
		--report-stylesheet workflow/report/report.css
	@echo; cat $(RESULTS)/tables/table1.txt 2>/dev/null || echo "no model of Table 1 has been evaluated yet"; echo
	@echo "report    $(RESULTS)/report.html"
	@echo "tables    $(RESULTS)/tables/"
	@echo "findings  $(RESULTS)/findings.md"

SELECT ?= not slow and not cluster
JOBS ?= 2
test: $(READY) ## run the tests, JOBS= of them at once
	python -m pytest -m "$(SELECT)" --numprocesses=$(JOBS) --dist=loadfile

test-all: $(READY) ## run all tests, the slow ones too
	python -m pytest

test-cluster: $(READY) ## run the workflow on a real, throw-away Slurm; root installs it first
	tests/cluster/install.sh
	python -m pytest tests/cluster

stress: $(READY) ## kill the tiny run again and again, compare with an undisturbed one; KILLS= SECONDS= SEED=
	python tests/stress.py --kills $(KILLS) --seconds $(SECONDS) --seed $(SEED)

KILLS ?= 50
SECONDS ?= 7200
SEED ?= 1

lint: $(READY) ## check style: ruff, snakefmt, snakemake --lint
	ruff check workflow tests benchmarks examples
	ruff format --check workflow tests benchmarks examples
	snakefmt --check Snakefile workflow
	snakemake --lint

bench: $(READY) ## measure speed and interval coverage
	python benchmarks/evaluator.py
	python benchmarks/training.py
	python benchmarks/recurrent_gan.py
	python benchmarks/coverage.py

clean: ## delete results and the environment
	rm -rf results .snakemake .venv

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

$(READY): requirements.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and "Python 3.11 is needed: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@
