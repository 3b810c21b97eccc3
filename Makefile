# Everything runs from one environment in .venv, made on first use from pinned versions.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
ARGS ?=
, := ,
TORCH ?= cuda
CHECK_PYTHON := import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else f"Touchstone needs Python 3.11 to 3.13; {sys.executable} is {v[0]}.{v[1]}. Say which to use: make PYTHON=python3.12 ...")
PEERS := $(PY) -m pip install --quiet --no-compile --no-deps --ignore-requires-python --upgrade --target $(VENV)/peers
# More than there are cores: many tests wait for processes they started.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(os.cpu_count() * 3 // 2)')

# Where it is set, each of the hundreds of processes of the tests compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test tests test-slow test-long test-ray test-verifiers test-agentlightning faults lint format bench gpu-check docs walk audit sbom release image-digests lock docs-check install install-dev install-locked clean

install: $(VENV)/.installed  ## what `manage.py` needs

$(VENV)/.installed: pyproject.toml constraints.txt client/pyproject.toml
	@$(PYTHON) -c '$(CHECK_PYTHON)'
	@echo "Installing about 110 packages into $(VENV), 2 GB on disk (about 6 GB where pip takes the CUDA build of torch): a minute or two with a fast connection."
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip uninstall -qq --yes touchstone touchstone-client  # what these were called; strangers' names
	$(PY) -m pip install --quiet -c constraints.txt -e client -e .
	touch $@

install-dev: $(VENV)/.installed-dev  ## and what tests, lint and benchmarks need

# One call of pip resolves both sets, next to the call that fetches the peers. Without --no-compile pip compiles all 29,000
# files, one after the other; what is imported, a quarter of them, is compiled then. A peer that cannot be had is left out.
$(VENV)/.installed-dev: pyproject.toml constraints.txt client/pyproject.toml .ci/peers.txt
	@$(PYTHON) -c '$(CHECK_PYTHON)'
	@echo "Installing about 230 packages into $(VENV), 3 GB on disk (about 7 GB where pip takes the CUDA build of torch): a minute or two with a fast connection."
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip uninstall -qq --yes touchstone touchstone-client  # what these were called; strangers' names
	$(PEERS) $$(grep -v '^#' .ci/peers.txt) & peers=$$!; \
	$(PY) -m pip install --quiet --no-compile -c constraints.txt -e client -e '.[dev]'; status=$$?; \
	wait $$peers || for peer in $$(grep -v '^#' .ci/peers.txt); do $(PEERS) $$peer; done; \
	exit $$status
	touch $(VENV)/.installed $@

install-locked:  ## an installation from the lock files, without development tools: TORCH=cuda, or TORCH=cpu (requirements/README.md)
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --require-hashes --no-deps --only-binary :all: -r requirements/lock-$(TORCH).txt
	$(PY) -m pip install --no-build-isolation --no-deps --no-index ./client -e .

demo: install  ## the whole loop on the sample project; ARGS=--exit stops after it
	$(PY) manage.py demo $(ARGS)

test: install-dev  ## all but what takes long, with lint and types; with ARGS what they name
	$(MAKE) --jobs 2 lint tests

tests: install-dev
	$(PY) -m pytest --workers $(WORKERS) $(or $(ARGS),--group unit$(,)web$(,)ml$(,)browser)

test-slow: install-dev  ## killed processes, learning policies, small benchmarks
	$(PY) -m pytest --workers $(WORKERS) $(or $(ARGS),--group slow)

test-long: install-dev  ## the rest: random faults, load, hostile input, full disks, two machines, larger benchmarks
	$(PY) -m pytest --workers 2 $(or $(ARGS),--group long)

test-ray: install-dev  ## trainings on a Ray cluster of two nodes; installs ray (80 MB to download) first
	$(PY) -m pip install --quiet -c constraints.txt -e '.[ray]'
	$(PY) -m pytest tests/training/test_ray.py

test-verifiers: install-dev  ## an environment of verifiers with our reward; installs it first, next to ours (570 MB)
	test -x $(VENV)/verifiers/bin/vf-eval || $(PYTHON) -m venv $(VENV)/verifiers
	$(VENV)/verifiers/bin/pip install --quiet verifiers==0.4.0 uv ./client
	$(PY) -m pytest tests/examples/test_verifiers_environment.py

test-agentlightning: install-dev  ## rollouts of Agent-Lightning with our reward; installs it first, next to ours (800 MB)
	test -x $(VENV)/agentlightning/bin/python || $(PYTHON) -m venv $(VENV)/agentlightning
	$(VENV)/agentlightning/bin/pip install --quiet agentlightning==0.3.0 ./client
	$(PY) -m pytest tests/examples/test_agentlightning_rollouts.py

faults: install-dev  ## of the slow and long ones those under faults
	$(PY) -m pytest --workers 2 tests/faults $(ARGS)

lint: install-dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

format: install-dev
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

bench: install-dev  ## the long tests, then every benchmark at full size; ARGS: names of benchmarks
	$(if $(ARGS),,$(MAKE) test-long)
	$(PY) -m benchmarks $(ARGS)

gpu-check: install-dev  ## what only a GPU can show; ARGS="--device cpu" runs the same code with a tiny model
	$(PY) -m benchmarks.gpu_check $(ARGS)

docs: install  ## the documentation site, which the web process serves at /docs: build/docs
	$(PY) -c 'import furo, myst_parser' 2>/dev/null || $(PY) -m pip install --quiet -c constraints.txt -e '.[docs]'
	$(PY) -m docs.site.build build/docs

docs-check: install-dev  ## runs the code blocks of README and docs; ARGS names pages, --quick leaves out those over 30 s
	$(PY) -m tests.docs_check $(ARGS)

walk: install-dev  ## the moving picture of the README, from a demo that is started for it: docs/images/walk.webp
	$(PY) -m docs.site.walk

audit: install-dev  ## known vulnerabilities of what is pinned and vendored, where a database can be reached; bandit
	$(PY) .ci/audit

sbom: install-dev  ## what an installation is made of, as CycloneDX: sbom.json; ARGS="--torch cpu --out FILE"
	$(PY) .ci/sbom $(ARGS)

release: install-dev docs  ## dist/: wheel, source archive (the image is built from it), client's wheel, bill of materials
	$(PY) .ci/release $(ARGS)

image-digests:  ## the images of the compose file, each by its digest, into docs/operations/.env
	docs/operations/image-digests

lock: $(VENV)/tools/.installed  ## requirements/*.txt: every distribution with the hashes of its files
	$(VENV)/tools/bin/python .ci/lock

$(VENV)/tools/.installed: .ci/tools.txt
	$(PYTHON) -m venv $(VENV)/tools
	$(VENV)/tools/bin/python -m pip install --quiet -r .ci/tools.txt
	touch $@

clean:
	rm -rf $(VENV) var
