// The Claude Agent SDK's store of transcripts beside its in-memory one, its own functions over the store, the hooks, two
// writers, and a service that ends.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { foldSessionSummary, getSessionMessages, InMemorySessionStore, listSessions } from "@anthropic-ai/claude-agent-sdk";
import { RippleMem, UnreachableError } from "ripplemem";
import { memoryHooks, RippleMemSessionStore } from "ripplemem/claude-agent-sdk";
import { elsewhere, freshBank, main, ownService, refused, seeded, url } from "./support.mjs";

const clientOf = (bank) => new RippleMem(url, { bank });
const storeOf = (bank = freshBank("claude")) => new RippleMemSessionStore(clientOf(bank), { foldSessionSummary });
const by = (key) => (a, b) => (String(a[key] ?? a) < String(b[key] ?? b) ? -1 : 1);

async function step(store, next, n) {
  const key = { projectKey: ["-home-ann", "tenant/1"][next(2)], sessionId: ["s1", "s2"][next(2)] };
  const subpath = ["subagents/agent-a", "subagents/ü b"][next(2)];
  const at = next(3) ? key : { ...key, subpath };
  switch (next(8)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return store.append(at, [{ type: "user", uuid: `u${n}`, n, message: { role: "user", content: "hi" } }, { type: "title", n }].slice(next(2)));
    case 4:
      return next(3) ? undefined : store.delete(at);
    case 5:
      return store.load(at);
    case 6:
      return (await store.listSessions(key.projectKey)).map(({ sessionId }) => sessionId).sort();
    default:
      return (await store.listSubkeys(key)).sort();
  }
}

async function beside_the_reference() {
  for (const seed of [1, 2]) {
    const [ours, reference] = [storeOf(), new InMemorySessionStore()];
    for (let n = 0; n < 100; n += 1) {
      const [one, two] = await Promise.all([step(ours, seeded(seed * 1_000 + n), n), step(reference, seeded(seed * 1_000 + n), n)]);
      assert.deepEqual(one, two, `seed ${seed}, step ${n}`);
    }
  }
}

async function contract() {
  const store = storeOf();
  const key = { projectKey: "p".repeat(200), sessionId: randomUUID() };
  const entry = (n) => ({ type: "user", uuid: randomUUID(), timestamp: new Date(1_700_000_000_000 + n * 1_000).toISOString(), n });
  const entries = Array.from({ length: 900 }, (_, n) => entry(n));
  await store.append(key, entries);
  assert.deepEqual(await store.load(key), entries);
  // The same entries again are the same entries; those without an id are added.
  await store.append(key, [...entries.slice(5, 20), { type: "tag", tag: "x" }, { type: "tag", tag: "x" }]);
  assert.equal((await store.load(key)).length, 902);
  const large = { type: "user", uuid: randomUUID(), image: "iVBOR".repeat(500_000), half: "\ud83d", z: 0.1 };
  await store.append({ ...key, subpath: "subagents/agent-x" }, [large]);
  assert.deepEqual(await store.load({ ...key, subpath: "subagents/agent-x" }), [large]);
  assert.deepEqual(await store.listSubkeys(key), ["subagents/agent-x"]);
  // Calls that were not waited for keep their order.
  const quick = { projectKey: "q", sessionId: "s" };
  await Promise.all(Array.from({ length: 12 }, (_, n) => store.append(quick, [{ type: "x", n }])));
  assert.deepEqual((await store.load(quick)).map(({ n }) => n), Array.from({ length: 12 }, (_, n) => n));
  const [{ mtime }] = await store.listSessions("q");
  assert.ok(Number.isInteger(mtime) && Math.abs(mtime - Date.now()) < 60_000, String(mtime));
  // What is deleted is gone, and its key may be used again.
  await store.delete(key);
  assert.equal(await store.load(key), null);
  assert.deepEqual([await store.listSubkeys(key), await store.listSessions(key.projectKey)], [[], []]);
  await store.append(key, entries.slice(0, 2));
  assert.deepEqual(await store.load(key), entries.slice(0, 2));
}

/** The SDK's functions over the store, with the summaries that it keeps. */
async function functions_of_the_sdk() {
  const store = storeOf();
  const [first, second] = [randomUUID(), randomUUID()];
  const { sessions, dir } = { sessions: [first, second], dir: "/home/ann/work" };
  const projectKey = dir.replace(/[^a-zA-Z0-9]/g, "-");
  for (const sessionId of sessions) {
    let parentUuid = null;
    for (const [n, [type, text]] of [["user", `Where does Ann live? ${sessionId}`], ["assistant", "In Lisbon."]].entries()) {
      const uuid = randomUUID();
      const content = type === "user" ? text : [{ type: "text", text }];
      const timestamp = new Date(1_700_000_000_000 + n).toISOString();
      await store.append({ projectKey, sessionId }, [{ type, uuid, parentUuid, sessionId, timestamp, cwd: dir, isSidechain: false, userType: "external", version: "1", message: { role: type, content } }]);
      parentUuid = uuid;
    }
  }
  const messages = await getSessionMessages(first, { dir, sessionStore: store });
  assert.deepEqual(messages.map(({ type }) => type), ["user", "assistant"]);
  const summaries = await store.listSessionSummaries(projectKey);
  const modified = await store.listSessions(projectKey);
  assert.deepEqual(summaries.map(({ sessionId, mtime }) => ({ sessionId, mtime })).sort(by("sessionId")), modified.sort(by("sessionId")));
  const listed = await listSessions({ dir, sessionStore: store });
  assert.deepEqual(listed.map(({ sessionId }) => sessionId).sort(), [first, second].sort());
  assert.ok(listed.every(({ summary }) => summary.includes("Where does Ann live?")), JSON.stringify(listed));
}

/** A prompt gets what was said in another session; the prompt and the answer are remembered, without what was recalled. */
async function hooks() {
  const bank = freshBank("hooks");
  const signal = new AbortController().signal;
  const memory = clientOf(bank);
  const call = async (hook, input) => {
    const [{ hooks: [run] }] = memoryHooks(memory, { speaker: "Ann" })[hook];
    return run({ hook_event_name: hook, ...input }, undefined, { signal });
  };
  const begun = await call("UserPromptSubmit", { session_id: "one", prompt_id: "p1", prompt: "My sister Clara keeps bees in Porto." });
  assert.deepEqual(begun, {});
  await call("Stop", { session_id: "one", prompt_id: "p1", last_assistant_message: "Bees are fine insects." });
  const asked = await call("UserPromptSubmit", { session_id: "two", prompt_id: "p2", prompt: "Who keeps bees?" });
  const context = asked.hookSpecificOutput.additionalContext;
  assert.match(context, /^<recalled_memory>\n[^]*Clara keeps bees[^]*\n<\/recalled_memory>$/);
  await call("Stop", { session_id: "two", prompt_id: "p2", last_assistant_message: `Clara does.\n\n${context}` });
  await memory.ask("Who?");
  const { turns } = await memory.turns({}, { order: "oldest", limit: 100 });
  assert.deepEqual(turns.map(({ turn, speaker, text }) => [turn, speaker, text]), [
    ["one.p1", "Ann", "My sister Clara keeps bees in Porto."],
    ["one.p1.answer", "Assistant", "Bees are fine insects."],
    ["two.p2", "Ann", "Who keeps bees?"],
    ["two.p2.answer", "Assistant", "Clara does."],
  ]);
  // Without a service a prompt has no memories, and says so; what cannot be remembered is an error.
  const away = new RippleMem("http://127.0.0.1:9", { bank });
  const told = [];
  const [{ hooks: [open] }] = memoryHooks(away, { remember: false, onProblem: (problem, doing) => told.push([doing, problem.code]) }).UserPromptSubmit;
  const output = await open({ hook_event_name: "UserPromptSubmit", session_id: "s", prompt: "Who?" }, undefined, { signal });
  assert.match(output.systemMessage, /no memories/);
  assert.match(output.hookSpecificOutput.additionalContext, /could not be read/);
  assert.deepEqual(told, [["recall", "unreachable"]]);
  const [{ hooks: [stop] }] = memoryHooks(away).Stop;
  assert.ok((await refused(() => stop({ hook_event_name: "Stop", session_id: "s", last_assistant_message: "x" }, undefined, { signal }))) instanceof UnreachableError);
}

async function two_writers() {
  const bank = freshBank("writers");
  await Promise.all(["one", "two"].map((name) => elsewhere("write", bank, name)));
  const entries = await storeOf(bank).load({ projectKey: "p", sessionId: "s" });
  assert.equal(entries.length, 45);
  for (const name of ["one", "two"]) {
    assert.deepEqual(entries.filter((entry) => entry.by === name).map(({ n }) => n), Array.from({ length: 20 }, (_, n) => n));
  }
  assert.equal(entries.filter(({ uuid }) => uuid?.startsWith("both")).length, 5, "an entry that both have is one");
}

async function write(bank, name) {
  const store = storeOf(bank);
  for (let n = 0; n < 20; n += 2) {
    await store.append({ projectKey: "p", sessionId: "s" }, [{ type: "x", by: name, n }, { type: "x", uuid: `${name}-${n}`, by: name, n: n + 1 }]);
    if (n < 10) await store.append({ projectKey: "p", sessionId: "s" }, [{ type: "x", uuid: `both-${n}` }]);
  }
}

async function service_killed() {
  const service = await ownService();
  if (!service) return;
  try {
    const store = new RippleMemSessionStore(new RippleMem(service.url, { bank: "killed" }));
    const key = { projectKey: "p", sessionId: "s" };
    await store.append(key, [{ type: "x", n: 1 }]);
    await service.kill();
    assert.ok((await refused(() => store.load(key))) instanceof UnreachableError);
    assert.ok((await refused(() => store.append(key, [{ type: "x", uuid: "two", n: 2 }]))) instanceof UnreachableError);
    await service.start();
    // As the SDK does: the same entries again.
    await store.append(key, [{ type: "x", uuid: "two", n: 2 }]);
    await store.append(key, [{ type: "x", uuid: "two", n: 2 }]);
    assert.deepEqual((await store.load(key)).map(({ n }) => n), [1, 2]);
  } finally {
    await service.kill();
  }
}

await main({ contract, beside_the_reference, functions_of_the_sdk, hooks, two_writers, service_killed }, { write });
