# One command each; every target sets up what it needs first, and a second run finds that done.
.DEFAULT_GOAL := help
.PHONY: help setup java demo demo-postgres demo-deploy test fresh-durations check test-fast test-slow beside-slow test-spark test-cli test-crash test-long test-postgres test-citus test-queries test-browser test-terminal test-dbt test-rest test-cluster test-cluster-core test-connect docs bench lock clean
SHELL := /bin/sh

BIN := .venv/bin
# Tests start hundreds of processes, each of which would compile the code again where Python may not keep what it compiled.
unexport PYTHONDONTWRITEBYTECODE
# Spark finds Java by JAVA_HOME; scripts/ensure-java left the home it found (or installed) in this file.
WITH_JAVA = JAVA_HOME="$$(cat .venv/java-home)"
# Who is done takes tests from the others, so that no process is left alone with a long last one.
PYTEST = scripts/with-tmp-in-memory $(BIN)/python -m pytest --dist worksteal
# Four on two cores: tests of servers and schedules wait for most of their time. Those of the fast tier compute only.
WORKERS ?= 4
CORES ?= 2
# Processes of the tiers with Spark, a JVM each: on two cores one computes while the other plans, commits or waits.
JVMS ?= 2
# How long each test took, for the table at the end of `make test`.
DURATIONS = .cache/test-durations.tsv
# What plays whole histories takes longer than all other tests without a JVM together.
HISTORIES = $(addprefix tests/fast/,differential sources/postgres sinks/test_histories.py scheduler/test_aligned.py \
	refresh/test_cycle_fixpoint.py compiler/test_query_kinds.py ivm/test_sensitivity.py sql/test_size.py)
# What waits for processes, servers, databases and clocks, and runs beside histories, which compute.
PROCESSES = $(addprefix tests/fast/,test_package.py test_bench.py catalog api/test_moving_catalog.py \
	cli/test_copied_catalog.py cli/test_demo_postgres.py cli/test_moved_project.py cli/test_processes.py \
	cli/test_running.py cli/test_safeguards.py cli/test_tpch.py cli/test_without_spark.py deploy/test_deployer.py \
	deploy/test_refused.py lake/test_rest_api.py observability/test_exporting.py refresh/test_lease_owners.py \
	scheduler/test_decisions.py scheduler/test_ending.py scheduler/test_landings.py scheduler/test_loop.py \
	scheduler/test_many_tables.py scheduler/test_refresh_units.py scheduler/test_waking.py serve/test_commands.py \
	serve/test_metrics.py sinks/test_bad_targets.py sinks/test_creation.py sinks/test_deliveries.py \
	sinks/test_placements.py sinks/test_row_locks.py sources/test_landing.py web/test_page.py web/test_around.py)
# Tests of the code's own order and of its papers, which `make check` runs: they read all of it, once in one process.
ORDER = $(addprefix tests/fast/,test_layers.py test_rooms.py test_papers.py test_prose.py test_docs.py)
# A process each: a JVM holds one Spark session, and every tier configures its own.
SPARK_TIERS = tests/spark tests/pipeline
OTHER_POSTGRES ?= 15
SUITES ?= tpcds nexmark
# What a cluster plays of the Spark tier when FILES names nothing.
ON_A_CLUSTER = $(addprefix tests/pipeline/test_,life.py gates.py groups.py cycles.py postgres.py maintain.py shared_changes.py)
SCALE ?= 1
ROUNDS ?= 2

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

setup: .venv/.stamp-setup java .venv/.stamp-warm ## Create .venv with the locked dependencies, find (or install) Java, fetch Spark's jars

.venv/.stamp-setup: requirements/build.lock requirements/dev.lock pyproject.toml scripts/setup-python
	@scripts/setup-python
	@touch $@

java: .venv/java-home

.venv/java-home: scripts/ensure-java | .venv/.stamp-setup
	@scripts/ensure-java > $@.new && mv $@.new $@

# Spark starts in half the time from an archive of the classes it loads; making it is a convenience that never fails.
.venv/.stamp-warm: .venv/.stamp-setup src/headrace/spark/class_archive.py src/headrace/spark/jars.py | .venv/java-home
	@$(WITH_JAVA) $(BIN)/python -m headrace.spark.class_archive 2>/dev/null || true
	@touch $@

demo: setup ## TPC-H in ./demo-project: four stream tables followed live, timed against plain Spark, killed, verified (SCALE, ROUNDS)
	@$(WITH_JAVA) $(BIN)/headrace demo demo-project --scale $(SCALE) --rounds $(ROUNDS)

demo-postgres: setup ## A private PostgreSQL under load in ./demo-postgres, followed live by stream tables
	@$(WITH_JAVA) $(BIN)/headrace demo postgres demo-postgres

demo-deploy: setup ## A query of a running pipeline is changed in ./demo-deploy, promoted, taken back, under a reader's eyes
	@$(WITH_JAVA) $(BIN)/headrace demo deploy demo-deploy

test: export HEADRACE_TEST_DURATIONS = $(abspath $(DURATIONS))
test: export HEADRACE_TEST_TURN := $(or $(TURN),$(shell scripts/commit-number))
test: fresh-durations ## What CI runs: of the slow tests a third, which is another one for each commit (TURN=all for all)
	@echo "test: the turn of commit number $$HEADRACE_TEST_TURN; make test TURN=all plays all slow tests"
	@$(MAKE) --no-print-directory -j 2 .venv/.stamp-setup .venv-docs/.stamp # neither needs anything of the other
	@$(MAKE) --no-print-directory -j 3 --output-sync=target check test-fast setup docs # one process checks types, one waits
	@$(MAKE) --no-print-directory -j 2 test-slow beside-slow
	@$(MAKE) --no-print-directory test-spark
	@$(MAKE) --no-print-directory -j 2 --output-sync=target test-cli test-crash # both wait for processes now and then
	@$(BIN)/python scripts/slowest-tests $(DURATIONS)

fresh-durations:
	@mkdir -p $(dir $(DURATIONS)) && rm -f $(DURATIONS)

# These are played whole for every commit.
check test-fast: export HEADRACE_TEST_TURN =

check: .venv/.stamp-setup ## Lint, format, types, layering
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST) $(ORDER)

test-fast: .venv/.stamp-setup ## Tests without a JVM, but for those of `test-slow`
	$(PYTEST) tests/fast $(foreach path,$(HISTORIES) $(PROCESSES) $(ORDER),--ignore=$(path)) -n $(CORES)

test-slow: .venv/.stamp-setup ## Without a JVM, too: histories of changes on DuckDB and PostgreSQL, whole processes, servers, clocks
	$(PYTEST) $(HISTORIES) $(PROCESSES) -n $(WORKERS)

# What it says is shown in one piece, as that of `test-slow` is shown while it runs.
beside-slow: setup
	@said=$$($(MAKE) --no-print-directory test-cluster-core 2>&1); status=$$?; printf '%s\n' "$$said"; exit $$status

test-spark: setup ## Tests with a real Spark
	@for tier in $(SPARK_TIERS); do echo "pytest $$tier"; $(WITH_JAVA) $(PYTEST) $$tier -n $(JVMS) || exit 1; done

test-cli: setup ## The command line, servers, tutorials and demos as users run them
	$(WITH_JAVA) $(PYTEST) tests/cli -n $(JVMS)

test-crash: setup ## Processes killed at every stage
	$(WITH_JAVA) $(PYTEST) tests/crash -n $(JVMS)

test-long: export HEADRACE_TEST_LONG = 1
test-long: export PYTEST_TIMEOUT = 7200
test-long: setup ## The random histories again, many more of them; large transactions; soaks; PostgreSQL 15
	$(PYTEST) tests/fast -n $(WORKERS)
	@for tier in $(SPARK_TIERS) tests/cli tests/crash; do echo "pytest $$tier"; $(WITH_JAVA) $(PYTEST) $$tier || exit 1; done
	@$(MAKE) test-postgres

test-postgres: .venv/.stamp-setup ## The tests of capture against another PostgreSQL than the packaged one (OTHER_POSTGRES=15)
	@binaries=$$(scripts/find-postgres $(OTHER_POSTGRES)) && echo "pytest with $$binaries" && \
		HEADRACE_TEST_POSTGRES=$$binaries $(PYTEST) tests/fast/sources/postgres

test-citus: setup ## Capture from a real Citus cluster (HEADRACE_CITUS_BIN names a folder with PostgreSQL and Citus installed)
	@scripts/find-citus >/dev/null && $(WITH_JAVA) $(PYTEST) tests/citus

test-queries: setup ## TPC-DS and Nexmark on Spark, verified through rounds of changes (SUITES=tpcds OPTIONS="--rounds 3 --queries q1,q2")
	@scripts/setup-beside tpcds && for suite in $(SUITES); do \
		$(WITH_JAVA) $(BIN)/python -m bench.suites $$suite $(OPTIONS) || exit 1; done

test-browser: .venv/.stamp-setup ## The page in a real Chromium, which is found or installed; renews the pictures of docs/images
	@browser=$$(scripts/find-chromium) && HEADRACE_CHROMIUM="$$browser" HEADRACE_SCREENSHOTS=docs/images \
		$(BIN)/python -m pytest tests/browser

test-terminal: setup ## The first ten minutes as typed into a terminal by tmux, which is found or installed; screens are compared
	@program=$$(scripts/find-tmux) && HEADRACE_TMUX="$$program" $(WITH_JAVA) $(BIN)/python -m pytest tests/terminal

test-dbt: setup ## `dbt build` and all that goes wrong, by the adapter of integrations/dbt in an environment of its own
	@scripts/setup-beside dbt && $(WITH_JAVA) .venv-dbt/bin/python -m pytest -c integrations/dbt/pyproject.toml integrations/dbt/tests

test-rest: setup ## A lake in an Iceberg REST catalog: Iceberg's own test server, killed at every step, and Nessie
	@scripts/setup-beside cluster && scripts/setup-beside rest && $(WITH_JAVA) $(PYTEST) tests/rest

test-cluster: setup ## A Spark cluster and a simulated S3 on loopback: processes killed, and pipelines of the Spark tier (FILES=…)
	@scripts/setup-beside cluster && $(WITH_JAVA) $(PYTEST) tests/cluster
	@HEADRACE_TEST_CLUSTER=1 $(WITH_JAVA) $(PYTEST) $(or $(FILES),$(ON_A_CLUSTER))

test-cluster-core: setup ## Five stream tables on such a cluster, with a source in PostgreSQL
	@scripts/setup-beside cluster && $(WITH_JAVA) $(PYTEST) tests/cluster/test_pipeline.py

test-connect: setup ## The Spark tier's pipelines against a Spark Connect server, without a JVM in the tests' process (FILES=…)
	@scripts/setup-beside connect && HEADRACE_TEST_CONNECT=1 $(WITH_JAVA) \
		scripts/with-tmp-in-memory .venv-connect/bin/python -m pytest $(or $(FILES),tests/pipeline)

docs: .venv-docs/.stamp ## The documentation as a site, in build/site; a broken link fails
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build

.venv-docs/.stamp: requirements/docs.lock scripts/find-python
	@$$(scripts/find-python) -m venv .venv-docs && .venv-docs/bin/pip install -q --disable-pip-version-check --require-hashes -r $<
	@touch $@

bench: setup ## The measurements of BENCHMARKS.md
	$(WITH_JAVA) $(BIN)/python -m bench

LOCK = uv pip compile --universal --generate-hashes --python-version 3.11 --no-emit-index-url --no-emit-find-links \
	--no-annotate --quiet --custom-compile-command "make lock"

lock: ## Renew the lock files (needs uv; for maintainers)
	@mkdir -p .cache
	$(LOCK) --upgrade pyproject.toml --extra demo --extra metrics --extra openlineage --extra otel --extra web --group pyproject.toml:dev -o requirements/dev.lock
	$(LOCK) --upgrade --group pyproject.toml:docs -o requirements/docs.lock
	$(LOCK) --upgrade --group pyproject.toml:build -c requirements/dev.lock -o requirements/build.lock
	sed -E 's/ \\$$//;/^ /d;/^(pathspec|protobuf|python-dateutil)==/d' requirements/dev.lock > .cache/dbt-constraints.txt
	$(LOCK) --upgrade requirements/dbt.in -c .cache/dbt-constraints.txt -o requirements/dbt.lock
	$(LOCK) --upgrade requirements/tpcds.in -o requirements/tpcds.lock
	$(LOCK) --upgrade requirements/connect.in -c .cache/dbt-constraints.txt -o requirements/connect.lock
	$(LOCK) --upgrade requirements/cluster.in -o requirements/cluster.lock
	$(LOCK) --upgrade requirements/rest.in -o requirements/rest.lock
	uv pip compile pyproject.toml --extra all --resolution lowest-direct --python-version 3.11 --no-emit-index-url \
		--no-annotate --no-header --quiet -o requirements/lowest.txt # what lower bounds are tested with, now and then

clean: ## Remove what make created, the environment included
	rm -rf .venv .venv-cluster .venv-connect .venv-docs .venv-dbt .venv-rest .venv-tpcds demo-project demo-postgres demo-deploy build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis bench/results
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
