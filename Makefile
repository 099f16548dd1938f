# `make demo` shows the main job, `make test` runs the tests. Both run scripts/setup first, which
# takes under a second when everything is installed.

# Find cargo where rustup installs it, even if the shell's profile was not read.
export PATH := $(PATH):$(HOME)/.cargo/bin
BINARY := target/release/ripplemem
# The tests of the `qwen3` feature. They need a second build of the crate with candle, about four
# minutes, so `make soak` runs them and `make test` does not. Unoptimised, since it is built for
# these tests alone.
TEST_QWEN3 := cargo test --release --locked -p ripplemem-models --features qwen3 \
	--config profile.release.package.ripplemem-models.opt-level=0 --lib embed::qwen3
TEST_CHAT := RIPPLEMEM_CHAT=all cargo test --release --locked --test ripplemem chat_kafka -- --nocapture

.PHONY: demo test dist check-dist dev test-data test-model soak bench bench-http setup check up down model model-real model-real-down

# Without Kafka, language models, buckets and the evaluation, which a first look does not need.
demo: setup
	cargo build --release --locked --no-default-features
	$(BINARY) demo

test: setup
	cargo test --release --locked --workspace

# The packages of this machine's kind, in dist/ (docs/install.md). `make check-dist` installs each of them in a bare system.
dist: setup
	scripts/dist

check-dist:
	scripts/check_dist

# The quick loop: `make dev` builds the program in target/debug, `make test-heart` runs the unit tests of src/heart
# there, `make test-heart ONLY=recall` those with that name. Naming the program beside a crate gives both builds
# the same features, so that neither compiles a dependency again.
dev: setup
	cargo build --locked --bin ripplemem

test-%: setup
	cargo test --locked -p ripplemem -p ripplemem-$* --lib -- $(ONLY)

# The real chat exports of tests/data/chat_samples.json, below the folder that RIPPLEMEM_DATA names,
# recorded payloads of Slack and Discord, and 196,000 turns of IRC through Kafka.
test-data: setup
	cargo test --release --locked --test ripplemem chat_samples -- --nocapture
	cargo test --release --locked --test ripplemem live_recorded -- --nocapture
	$(TEST_CHAT)

# The language-model path against SmolLM2-135M-Instruct, which runs on this machine. Skipped, by name,
# where pip cannot install it.
test-model: setup
	cargo test --release --locked --test ripplemem real_model -- --ignored --nocapture

# The tests that take long: those of the `qwen3` feature, the kill tests with their full number of
# seeded rounds, half an hour of flood, an hour of steady load, a million mutated records of exports,
# and 196,000 turns of IRC where RIPPLEMEM_DATA has them.
soak: setup
	$(TEST_QWEN3)
	RIPPLEMEM_KILL_ROUNDS=200 cargo test --release --locked --test ripplemem recovery -- --nocapture
	RIPPLEMEM_KILL_ROUNDS=200 cargo test --release --locked --test ripplemem snapshots::killed -- --nocapture
	RIPPLEMEM_KILL_ROUNDS=50 cargo test --release --locked --test ripplemem snapshots::a_restore_killed -- --nocapture
	RIPPLEMEM_KAFKA_KILL_ROUNDS=200 cargo test --release --locked --test ripplemem kafka::killed -- --nocapture
	RIPPLEMEM_INSTANCE_KILL_ROUNDS=200 cargo test --release --locked --test ripplemem kafka_instances::killed -- --nocapture
	RIPPLEMEM_HTTP_KILL_ROUNDS=100 cargo test --release --locked --test ripplemem http_load::a_service_killed -- --nocapture
	RIPPLEMEM_STEADY_SECONDS=3600 cargo test --release --locked --test ripplemem http_load::steady -- --nocapture
	RIPPLEMEM_IDLE_CONNECTIONS=5000 cargo test --release --locked --test ripplemem http_load::thousands -- --nocapture
	RIPPLEMEM_FUZZ_EXAMPLES=500 cargo test --release --locked --test ripplemem document -- --nocapture
	RIPPLEMEM_OUTAGE_SECONDS=30 cargo test --release --locked --test ripplemem kafka::the_service_outlives -- --nocapture
	RIPPLEMEM_FLOOD_SECONDS=1800 cargo test --release --locked --test ripplemem kafka::a_flood -- --nocapture
	RIPPLEMEM_MUTATED=1000000 cargo test --release --locked --test ripplemem mutated -- --nocapture
	$(TEST_CHAT)

bench: setup
	cargo bench --locked

# Questions over HTTP by `oha`, beside the front in the same process and beside Mem0's library.
bench-http: setup
	cargo bench --locked --bench http

# Formatting, lints and documentation, with warnings as errors. `--all-features` also checks the code
# of the `qwen3` feature; the build after it is the demo's.
check:
	cargo fmt --all --check
	cargo clippy --release --locked --workspace --all-targets --all-features -- -D warnings
	cargo clippy --release --locked --no-default-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --release --locked --workspace --no-deps --all-features

# Starts a Kafka broker on 127.0.0.1:9092, without containers and with its data in
# ripplemem-data/kafka, and the scripted model of pipelines/llm.toml on 127.0.0.1:8089.
up: model
	cargo build --release --locked
	@scripts/broker up

down:
	@scripts/model down
	@scripts/broker down

# Starts the scripted model alone.
model:
	cargo build --release --locked --bin scripted-model
	@scripts/model up

# Starts a real language model for pipelines/llm-local.toml; MODEL=large takes the larger one.
MODEL := small
model-real:
	@scripts/model_real up $(MODEL)

model-real-down:
	@scripts/model_real down

setup:
	@scripts/setup
