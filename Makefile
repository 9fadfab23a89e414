# Two commands for a newcomer (`make demo`, `make test`); the others are for work on hookbus.
# Each environment is made once, and again when pyproject.toml changes.

PYTHON ?= python3
TEST = .venv-test/bin
# Whole files, because their tests share brokers.
PARALLEL = -n 2 --dist loadfile
FOLDERS = router codecs policies schemas

.PHONY: demo test test-kafka chaos docs lint types format lock rules clean

demo: .venv-demo/installed
	@.venv-demo/bin/hookbus demo

test: .venv-test/installed
	$(TEST)/python -m pytest $(PARALLEL)

# The same tests that `make test` runs on Tansu, on Apache Kafka. Needs Java 17 and Maven.
test-kafka: .venv-test/installed
	HOOKBUS_TEST_BROKER=kafka $(TEST)/python -m pytest $(PARALLEL) -m kafka

# Everything breaks for a while (CHAOS_SECONDS) on three Kafka nodes; then everything is counted.
CHAOS_SECONDS ?= 540
chaos: .venv-test/installed
	$(TEST)/python -m tests.chaos --seconds $(CHAOS_SECONDS)

# The pages of docs/ that are made from the code.
docs: .venv-test/installed
	$(TEST)/python -m docs.reference

lint: .venv-test/installed
	$(TEST)/ruff check .
	$(TEST)/ruff format --check .

format: .venv-test/installed
	$(TEST)/ruff check --fix .
	$(TEST)/ruff format .

# The folders are subpackages of hookbus, which a type checker can't see from the mapping in
# pyproject.toml: it gets links under their import names.
types: .venv-test/installed
	@mkdir -p build/typing/hookbus
	@for folder in $(FOLDERS); do ln -sfn "$(CURDIR)/$$folder" build/typing/hookbus/$$folder; done
	cd build/typing && ../../$(TEST)/mypy --config-file ../../pyproject.toml -p hookbus.router -p hookbus.codecs -p hookbus.policies -p hookbus.schemas

# What the container image installs, traces included, with hashes, for all that pyproject.toml
# allows. Nothing else changes the locks.
LOCK = .venv-lock/bin/uv pip compile --universal --python-version 3.11 --generate-hashes --upgrade \
  --quiet --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'
lock:
	@$(PYTHON) -m venv .venv-lock
	@.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(LOCK) --extra traces pyproject.toml -o deploy/container/requirements.lock
	$(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' | $(LOCK) - -o deploy/container/build.lock

# The rules of Prometheus as the Prometheus operator takes them; a test fails while they differ.
RULES = deploy/kubernetes/monitoring/prometheusrule.yaml
rules:
	@printf '%s\n' '# deploy/prometheus/rules.yml as a custom resource, made by `make rules`.' \
	  'apiVersion: monitoring.coreos.com/v1' 'kind: PrometheusRule' 'metadata:' \
	  '  name: hookbus' '  labels: {app.kubernetes.io/name: hookbus}' 'spec:' >$(RULES)
	@sed -n '/^groups:/,$$p' deploy/prometheus/rules.yml | sed 's/^./  &/' >>$(RULES)

.venv-demo/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hookbus needs Python 3.11 or newer; choose one with PYTHON=")'
	@echo "Installing hookbus into .venv-demo ..."
	@$(PYTHON) -m venv .venv-demo
	@.venv-demo/bin/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

.venv-test/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hookbus needs Python 3.11 or newer; choose one with PYTHON=")'
	@echo "Installing hookbus and its test tools into .venv-test ..."
	@$(PYTHON) -m venv .venv-test
	@.venv-test/bin/python -m pip install --quiet --disable-pip-version-check -e '.[test,lint]'
	@touch $@

clean:
	rm -rf .venv-demo .venv-test .venv-lock build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
