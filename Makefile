# Two commands: `make demo` runs the main job, `make test` passes the tests.
# Both set up what they need first (scripts/setup; nothing to do takes under a second).

# cargo as scripts/setup finds it, also where the shell's profile was not read.
export PATH := $(PATH):$(HOME)/.cargo/bin
BINARY := target/release/ripplemem
# What the feature adds, alone: the crate is built for it once more, so without optimising it.
TEST_QWEN3 := cargo test --release --locked --features qwen3 \
	--config profile.release.package.ripplemem.opt-level=0 --lib embed::qwen3

.PHONY: demo test soak bench setup check up down model

demo: setup
	cargo build --release --locked
	scripts/demo $(BINARY)

test: setup
	cargo test --release --locked
	cargo build --release --locked
	$(TEST_QWEN3)

# The kill tests with their full number of seeded rounds, and half an hour of flood.
soak: setup
	RIPPLEMEM_KILL_ROUNDS=200 cargo test --release --locked --test ripplemem recovery -- --nocapture
	RIPPLEMEM_KILL_ROUNDS=200 cargo test --release --locked --test ripplemem snapshots::killed -- --nocapture
	RIPPLEMEM_KILL_ROUNDS=50 cargo test --release --locked --test ripplemem snapshots::a_restore_killed -- --nocapture
	RIPPLEMEM_KAFKA_KILL_ROUNDS=200 cargo test --release --locked --test ripplemem kafka::killed -- --nocapture
	RIPPLEMEM_FLOOD_SECONDS=1800 cargo test --release --locked --test ripplemem kafka::a_flood -- --nocapture

bench: setup
	cargo bench --locked

# Formatting, lints and documentation, warnings as errors.
check:
	cargo fmt --check
	cargo clippy --release --locked --all-targets --all-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --release --locked --no-deps --all-features

# A Kafka broker on 127.0.0.1:9092, without containers; its data in ripplemem-data/kafka. And the
# scripted model that pipelines/llm.toml asks, on 127.0.0.1:8089.
up: model
	@scripts/broker up

down:
	@scripts/model down
	@scripts/broker down

# The scripted model alone.
model:
	cargo build --release --locked --bin scripted-model
	@scripts/model up

setup:
	@scripts/setup
