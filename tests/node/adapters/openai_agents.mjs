// The OpenAI Agents SDK's session: beside its in-memory one, in runs of its scripted model, from several processes, and
// over a service that ends.
import assert from "node:assert/strict";
import { Agent, MemorySession, Runner, setTracingDisabled, tool } from "@openai/agents";
import { assistantMessage, functionCall, ScriptedModel } from "@openai/agents-core/testing";
import { RippleMem, UnreachableError } from "ripplemem";
import { memoryTools, RippleMemSession } from "ripplemem/openai-agents";
import { elsewhere, freshBank, main, ownService, refused, seeded, url } from "./support.mjs";

// Else what the agents say is sent to OpenAI.
setTracingDisabled(true);

const user = (text) => ({ type: "message", role: "user", content: [{ type: "input_text", text }] });
const said = (text) => ({ type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text }] });
const called = (callId, args) => ({ type: "function_call", callId, name: "lookup", status: "completed", arguments: args });
const result = (callId, text) => ({ type: "function_call_result", callId, name: "lookup", status: "completed", output: { type: "text", text } });

const clientOf = (bank) => new RippleMem(url, { bank });
const sessionOf = (bank = freshBank("session"), options = {}) =>
  new RippleMemSession(clientOf(bank), { sessionId: "s", ...options });

/** What one step does to a session, and what it gives. */
async function step(session, next, n) {
  switch (next(9)) {
    case 0:
    case 1:
    case 2:
      return session.addItems([user(`question ${n}`), called(`c${next(3)}`, `{"n":${n}}`), said(`answer ${n}`)].slice(0, 1 + next(3)));
    case 3:
      return session.popItem();
    case 4:
      return session.getItems(next(4));
    case 5:
      return session.getItems();
    case 6:
      return session.applyHistoryMutations({
        mutations: [{ type: "replace_function_call", callId: `c${next(3)}`, replacement: called("c9", `{"again":${n}}`) }],
      });
    case 7: {
      const suffix = await session.getItems(1);
      const transaction = { type: "replace_suffix", expectedSuffix: suffix, replacement: [user(`replaced ${n}`), said("well")] };
      return session.applyHistoryTransaction({ operationId: `operation-${n}`, transaction });
    }
    default:
      return next(3) ? session.addItems([]) : session.clearSession();
  }
}

async function beside_the_reference() {
  for (const seed of [1, 2]) {
    const [ours, reference] = [sessionOf(), new MemorySession({ sessionId: "s" })];
    for (let n = 0; n < 80; n += 1) {
      const [one, two] = await Promise.all([step(ours, seeded(seed * 1_000 + n), n), step(reference, seeded(seed * 1_000 + n), n)]);
      assert.deepEqual(one, two, `seed ${seed}, step ${n}`);
    }
    assert.deepEqual(await ours.getItems(), await reference.getItems());
  }
}

async function contract() {
  const session = sessionOf();
  assert.equal(await session.getSessionId(), "s");
  assert.ok((await new RippleMemSession(clientOf(freshBank())).getSessionId()).length > 8);
  const items = [user("one"), said("two"), called("c1", "{}"), result("c1", "three"), { type: "reasoning", content: [] }];
  await session.addItems(items);
  assert.deepEqual(await session.getItems(), items);
  assert.deepEqual(await session.getItems(2), items.slice(-2));
  // Another session of the bank has a history of its own.
  const other = sessionOf(undefined, { sessionId: "other" });
  assert.deepEqual(await other.getItems(), []);
  // What JSON does not hold by itself: bytes. What it cannot hold at all is refused before anything is written.
  const bytes = { ...user("bytes"), providerData: { data: new Uint8Array([1, 255, 0]), half: "\ud83d", deep: JSON.parse(`${"[".repeat(60)}1${"]".repeat(60)}`) } };
  await session.addItems([bytes]);
  assert.deepEqual(await session.popItem(), bytes);
  await refused(() => session.addItems([user("fine"), { ...user("date"), providerData: { at: new Date() } }]), /Date/);
  assert.deepEqual(await session.getItems(), items);
  const large = user("a long text ü ".repeat(90_000));
  await session.addItems([large]);
  assert.deepEqual(await session.getItems(1), [large]);
  assert.deepEqual(await session.popItem(), large);
  const many = Array.from({ length: 1_200 }, (_, n) => user(`number ${n}`));
  await session.addItems(many);
  assert.deepEqual((await session.getItems()).slice(-1_200), many);
  await session.replaceHistoryWithCompaction([user("summary"), said("last")]);
  assert.deepEqual(await session.getItems(), [user("summary"), said("last")]);
  await session.clearSession();
  assert.deepEqual(await session.getItems(), []);
  await session.addItems([user("again")]);
  assert.deepEqual(await session.getItems(), [user("again")]);
}

/** What persons and assistants said is memory; calls of tools and their results are kept, and not recalled. */
async function is_memory() {
  const bank = freshBank("memory");
  const session = sessionOf(bank, { speaker: "Ann" });
  await session.addItems([user("I keep my kayak in the old boathouse."), called("c", "{}"), result("c", "kayak kayak kayak")]);
  const { units } = await clientOf(bank).ask("Where is the kayak?");
  const quoted = units.flatMap(({ excerpts }) => excerpts.map(({ speaker, text }) => `${speaker}: ${text}`));
  assert.deepEqual(quoted, ["Ann: I keep my kayak in the old boathouse."]);
  await session.replaceHistoryWithCompaction([said("The kayak is in the boathouse.")]);
  assert.equal((await clientOf(bank).ask("Where is the kayak?")).units.length, 1, "what was compacted is still recalled");
  await session.clearSession();
  assert.deepEqual((await clientOf(bank).ask("Where is the kayak?")).units, []);
}

/** A session that somebody forgot is empty, and goes on. */
async function forgotten() {
  const bank = freshBank("forgotten");
  const session = sessionOf(bank);
  for (const text of ["one", "two", "three"]) {
    await session.addItems([user(text)]);
    assert.deepEqual(await session.getItems(), [user(text)]);
    assert.ok((await clientOf(bank).forgetTurns({ session: "s" })).turns >= 2);
    assert.deepEqual(await sessionOf(bank).getItems(), []);
  }
  await sessionOf(bank).addItems([user("again")]);
  assert.deepEqual(await session.getItems(), [user("again")]);
}

/** Where the answer to a write is lost, the session finds out whether it was written. */
async function lost_answers() {
  const bank = freshBank("lost");
  let lost = "";
  const losing = async (address, request) => {
    const loses = lost && String(address).endsWith("/v1/turns");
    if (loses && lost === "request") {
      lost = "";
      throw new TypeError("the connection broke off");
    }
    const response = await fetch(address, request);
    if (!loses) return response;
    lost = "";
    await response.text();
    throw new TypeError("the connection broke off");
  };
  const session = new RippleMemSession(new RippleMem(url, { bank, fetch: losing }), { sessionId: "s" });
  for (const [n, what] of ["request", "answer", "answer"].entries()) {
    lost = what;
    await session.addItems([user(`item ${n}`)]);
    assert.equal(lost, "");
  }
  assert.deepEqual(await session.getItems(), [0, 1, 2].map((n) => user(`item ${n}`)));
  lost = "answer";
  assert.deepEqual(await session.popItem(), user("item 2"));
  assert.equal((await sessionOf(bank).getItems()).length, 2);
}

/** An agent with tools runs in one process and goes on in another. */
async function in_runs() {
  const bank = freshBank("runs");
  const first = await elsewhere("agent", bank, "Ann", "My sister Clara keeps bees.");
  assert.equal(first.answer, "Noted.");
  const second = await elsewhere("agent", bank, "Ann", "Who keeps bees?");
  // The second process sent the model what was said in the first.
  assert.match(JSON.stringify(second.sent), /Clara keeps bees.*lookup.*Noted.*Who keeps bees/s);
  const items = await sessionOf(bank, { sessionId: "Ann" }).getItems();
  assert.deepEqual(items.map(({ role, type }) => role ?? type), ["user", "function_call", "function_call_result", "assistant", "user", "function_call", "function_call_result", "assistant"]);
}

async function agent(bank, sessionId, question) {
  const model = new ScriptedModel([
    [functionCall("lookup", { word: "bees" }, { callId: `call-${Date.now()}` })],
    [assistantMessage("Noted.")],
  ]);
  const lookup = tool({
    name: "lookup",
    description: "Looks a word up.",
    parameters: { type: "object", properties: { word: { type: "string" } }, required: ["word"], additionalProperties: false },
    strict: true,
    execute: ({ word }) => `${word}: insects`,
  });
  const runner = new Runner({ model, tracingDisabled: true });
  const { finalOutput } = await runner.run(new Agent({ name: "a", tools: [lookup] }), question, { session: sessionOf(bank, { sessionId }) });
  return { answer: finalOutput, sent: model.calls[0].request.input };
}

/** The memory's tools in a run: what one agent remembers, another one recalls. */
async function tools() {
  const memory = clientOf(freshBank("tools"));
  const run = async (name, given, check) => {
    const model = new ScriptedModel([[functionCall(name, given, { callId: "c" })], [assistantMessage("Done.")]]);
    const runner = new Runner({ model, tracingDisabled: true });
    await runner.run(new Agent({ name: "a", tools: memoryTools(memory) }), "go on");
    check(JSON.stringify(model.calls[1].request.input));
  };
  await run("remember", { speaker: "Ann", text: "I moved to Lisbon." }, (input) => assert.match(input, /remembered as turn/));
  await run("recall", { question: "Where did Ann move?" }, (input) => assert.match(input, /Lisbon/));
}

/** Processes add to one session at the same time: each call's items stay together, in order, and none is lost. */
async function two_writers() {
  const bank = freshBank("writers");
  await Promise.all(["one", "two"].map((by) => elsewhere("write", bank, by)));
  const texts = (await sessionOf(bank).getItems()).map(({ content }) => content[0].text);
  assert.equal(texts.length, 60);
  for (let at = 0; at < 60; at += 3) {
    const [by, n] = texts[at].split(" ");
    assert.deepEqual(texts.slice(at, at + 3), [0, 1, 2].map((part) => `${by} ${n} ${part}`));
  }
  for (const by of ["one", "two"]) {
    assert.deepEqual(texts.filter((text) => text.startsWith(by) && text.endsWith("0")), Array.from({ length: 10 }, (_, n) => `${by} ${n} 0`));
  }
  // One operation, whoever applies it, is applied once.
  const transaction = { type: "append_items", items: [user("once")] };
  await Promise.all([0, 1, 2, 3].map(() => sessionOf(bank).applyHistoryTransaction({ operationId: "o", transaction })));
  assert.equal((await sessionOf(bank).getItems()).length, 61);
  // Items that are taken at the same time are different ones.
  const popped = await Promise.all([0, 1, 2, 3].map(() => sessionOf(bank).popItem()));
  assert.equal(new Set(popped.map((item) => item.content[0].text)).size, 4);
}

async function write(bank, by) {
  const session = sessionOf(bank);
  for (let n = 0; n < 10; n += 1) await session.addItems([0, 1, 2].map((part) => user(`${by} ${n} ${part}`)));
}

async function service_killed() {
  const service = await ownService();
  if (!service) return;
  try {
    const session = new RippleMemSession(new RippleMem(service.url, { bank: "killed" }), { sessionId: "s" });
    await session.addItems([user("one"), said("two")]);
    await service.kill();
    assert.ok((await refused(() => session.getItems())) instanceof UnreachableError);
    assert.ok((await refused(() => session.addItems([user("lost")]))) instanceof UnreachableError);
    await service.start();
    assert.deepEqual(await session.getItems(), [user("one"), said("two")]);
    await session.addItems([user("three")]);
    assert.deepEqual(await session.popItem(), user("three"));
  } finally {
    await service.kill();
  }
}

await main(
  { contract, beside_the_reference, is_memory, forgotten, lost_answers, in_runs, tools, two_writers, service_killed },
  { agent, write },
);
