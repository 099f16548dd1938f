// Checks of the TypeScript client against a running service, on Node, Deno and Bun.
//
//     typescript_check.mjs URL CHECK [MORE]
//
// MORE is the token of the check `denied`, and of `resumes` the program and its arguments, as JSON, which the check
// kills and starts again; that one has no URL. Exits with 1 and a trace when something is not as it should be.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import {
  bankName,
  BusyError,
  ConflictError,
  DeniedError,
  InvalidError,
  RippleMem,
  RippleMemError,
  UnknownBankError,
  UnreachableError,
} from "../../clients/typescript/dist/index.js";
import { callTool, readContext, TOOLS } from "../../clients/typescript/dist/tools.js";

const TURNS = [
  {
    turn: "1",
    speaker: "Ann",
    text: "I moved to Lisbon last week, into a flat above a bakery.",
    time: new Date("2024-05-06T09:00:00+01:00"),
  },
  {
    turn: "2",
    speaker: "Bob",
    text: "My sister Clara keeps bees in Porto.",
    time: "2024-05-06T09:01:00+01:00",
    session: "monday",
  },
];
const { time } = TURNS[0];

/** The error of a call, which is of a kind and says this. A call rejects, and throws nothing at once. */
async function refused(kind, call, text = "") {
  const called = call();
  try {
    await called;
  } catch (error) {
    assert.ok(error instanceof kind, `${error?.stack}`);
    assert.ok(error.message.includes(text), error.message);
    return error;
  }
  throw new Error(`no ${kind.name} that says ${text}`);
}

/** A server that answers each request by a function; its address, what it was asked, and its end. */
async function answering(answer) {
  const asked = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (data) => {
      body += data;
    });
    request.on("end", () => {
      asked.push({ method: request.method, url: request.url, headers: request.headers, body });
      answer(response, asked.length, request);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  const end = () => {
    server.closeAllConnections?.();
    server.close();
  };
  return { url, asked, end };
}

function send(response, status, body, headers = {}) {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(typeof body === "string" ? body : JSON.stringify(body));
}

const first = async (stream) => {
  for await (const one of stream) return one;
  throw new Error("the stream has ended");
};
const excerpts = (units) => units.flatMap((unit) => unit.excerpts);

async function each_call(url) {
  const memory = new RippleMem(`${url}/`, { bank: "acme/support" });
  const written = await memory.remember(TURNS);
  assert.ok(written.turns === 2 && written.after, JSON.stringify(written));
  assert.equal((await memory.remember([])).turns, 0);
  const askedAt = new Date("2024-05-07T00:00:00+01:00");
  const evidence = await memory.ask("Where does Ann live?", { askedAt });
  assert.match(evidence.context, /Lisbon/);
  assert.ok(excerpts(evidence.units).some(({ turn }) => turn === "1"), JSON.stringify(evidence.units));
  assert.ok(evidence.units[0].provenance.length && evidence.reflects.length && evidence.trace);
  assert.ok((await memory.ask("Where does Ann live?", { after: written.after })).units.length);
  const why = await memory.explain("Where does Ann live?", { turn: "1", askedAt });
  assert.ok(why.quoted && why.failed == null && why.steps.length === 12, JSON.stringify(why));
  const lost = await memory.explain("Where does Ann live?", { turn: "none" });
  assert.ok(!lost.quoted && lost.failed === "stored" && lost.change, JSON.stringify(lost));
  await refused(InvalidError, () => memory.explain("Where does Ann live?", {}), "either a turn or a unit");
  assert.deepEqual(await memory.banks(), ["acme/support"]);
  const before = await memory.digest({ bank: "acme/support" });
  assert.ok(before.units > 0 && before.hash.length === 32, JSON.stringify(before));
  const counted = await memory.countedBanks({ prefix: "acme" });
  assert.deepEqual(counted.counts.map(({ bank, state, units }) => [bank, state, units]), [["acme/support", "here", before.units]]);
  assert.equal(counted.next ?? undefined, undefined);
  assert.deepEqual((await memory.countedBanks({ start: "b" })).counts, []);
  const shown = await memory.units([evidence.units[0].id, "0".repeat(16)]);
  assert.deepEqual(shown.units.map((unit) => unit.restatement), [evidence.units[0].restatement]);
  assert.deepEqual(shown.missing, ["0".repeat(16)]);
  const view = await memory.unit(evidence.units[0].id);
  assert.equal(view.unit.restatement, evidence.units[0].restatement);
  await refused(InvalidError, () => memory.unit("0".repeat(16)), "no unit");
  const graph = await memory.graph();
  assert.deepEqual([graph.total_units, graph.truncated], [before.units, false]);
  const around = (await memory.graph({ around: graph.units.at(-1).id, limit: 1 })).units;
  assert.deepEqual(around, graph.units.slice(-1));
  const history = await memory.history({ limit: 5 });
  assert.deepEqual([history.points, history.more], [[], 0], "no snapshots are kept");
  await refused(InvalidError, () => memory.diff("0"), "snapshot");
  const held = await memory.token();
  assert.ok(held.name == null && held.rights.includes("read") && held.banks[0] === "*", JSON.stringify(held));
  // The same turns again are the same turns.
  await memory.remember(TURNS);
  await memory.ask("Where does Ann live?");
  assert.equal((await memory.digest({ bank: "acme/support" })).hash, before.hash);
  await memory.remember({ turn: "1", speaker: "Ann", text: "I moved to Madrid.", time, version: 1 });
  assert.doesNotMatch((await memory.ask("Where does Ann live?")).context, /Lisbon/);
  const gone = await memory.forget("1");
  assert.ok(gone.gone && gone.turn === "1", JSON.stringify(gone));
  assert.doesNotMatch((await memory.ask("Where does Ann live?")).context, /Madrid/);
  const plans = [0, 1, 2, 3, 4].map((n) => ({ turn: `d${n}`, speaker: "Dora Lee", text: `Plan ${n} of the garden.`, time }));
  await memory.remember(plans);
  const dora = { speakers: ["Dora Lee"], since: new Date(0) };
  const whole = await memory.forgetTurns({ speakers: ["dora lee"] }, { dryRun: true });
  assert.ok(whole.turns === 5 && whole.shown.length === 5 && whole.confirm && !whole.gone, JSON.stringify(whole));
  const page = await memory.turns(dora, { limit: 3 });
  const rest = await memory.turns(dora, { before: page.next, limit: 3 });
  assert.ok(page.more === 2 && rest.next == null, JSON.stringify(rest));
  assert.equal(new Set([...page.turns, ...rest.turns].map(({ turn }) => turn)).size, 5);
  await memory.forget("d4");
  await refused(InvalidError, () => memory.forgetTurns(dora, { confirm: whole.confirm }), "repeat");
  const deleted = await memory.forgetTurns(dora);
  assert.ok(deleted.turns === 4 && deleted.gone, JSON.stringify(deleted));
  const receipts = await memory.forgets({ bank: "acme/support" });
  assert.deepEqual(receipts.map(({ turns }) => turns), [4, 1, 1]);
  assert.deepEqual(receipts[0], deleted.receipt);
  assert.deepEqual(await memory.forgets({ bank: "acme/other" }), []);
  assert.equal((await memory.forgets()).length, 3);
  assert.equal((await memory.turns(dora)).turns.length, 0);
  await refused(InvalidError, () => memory.forgetTurns({}), "nothing is named");
  await memory.endSession("monday");
  const status = await memory.status();
  assert.ok(status.version && status.problem == null && status.behind >= 0, JSON.stringify(status));
}

/** Who asks and what was said before change the answer. */
async function circumstances(url) {
  const said = [
    "I keep my kayak in the old boathouse.",
    "I keep my kayak in the cellar at home.",
    "The violin is at the luthier until Friday.",
    "The accordion has a torn bellows since the summer.",
  ];
  const memory = new RippleMem(url, { bank: "boats" });
  await memory.remember(said.map((text, n) => ({ turn: String(n), speaker: ["Ann", "Bo"][n % 2], text, time })));
  for (const [question, options, turn] of [
    ["Where do I keep my kayak?", { asker: "Ann" }, "0"],
    ["Where do I keep my kayak?", { asker: "Bo" }, "1"],
    ["Any news?", { saidBefore: [{ speaker: "Bo", text: "the violin is at the luthier" }] }, "2"],
    ["Any news?", { saidBefore: [{ speaker: "Bo", text: "the accordion has a torn bellows" }] }, "3"],
  ]) {
    assert.deepEqual((await memory.ask(question, options)).units[0].sources, [turn], JSON.stringify(options));
    const followed = await first(memory.subscribe(question, options));
    assert.deepEqual(followed.units[0].sources, [turn], JSON.stringify(options));
  }
  const spent = (await memory.ask("Where is the kayak?", { mostTokens: 40 })).tokens;
  assert.ok(spent.spent <= spent.most && spent.most === 40, JSON.stringify(spent));
  const stranger = await memory.ask("Where do I live?", { asker: "Cy" });
  assert.deepEqual([stranger.notice.code, stranger.units, stranger.supported], ["unknown_asker", [], false]);
  const beside = await memory.ask("Where is the violin?", { compare: true, profile: "paper" });
  assert.ok(beside.flat.meaning.units[0].turns.length && beside.flat.words.units[0].score > 0);
  assert.equal((await memory.ask("Where is the violin?")).flat ?? undefined, undefined);
  await refused(InvalidError, () => memory.ask("Where is the violin?", { profile: "papers" }), "paper-longmemeval");
}

/** Metadata, versions that the service chooses, conditions, and writes that stand or fall together. */
async function writes(url) {
  const memory = new RippleMem(url, { bank: "writes" });
  // Lists have what is reflected.
  const write = (turns, options = {}) => memory.remember(turns, { waitMs: 10_000, ...options });
  const turn = { turn: "1", speaker: "Ann", text: "I keep my kayak in the boathouse.", time };
  const metadata = { n: 1, deep: { list: [1.5, "a", null, true], big: 9007199254740991 } };
  const first = await write({ ...turn, version: "next", metadata });
  assert.deepEqual(first.versions, { 1: 1 });
  // The same again keeps its version; other content has the next one.
  assert.deepEqual((await write({ ...turn, version: "next", metadata })).versions, { 1: 1 });
  assert.deepEqual((await write({ ...turn, version: "next", metadata: { n: 2 } })).versions, { 1: 2 });
  assert.deepEqual((await write({ ...turn, version: "next", metadata })).versions, { 1: 3 });
  const [held] = (await memory.turns({ turns: ["1"] })).turns;
  assert.deepEqual([held.version, held.metadata, held.recall ?? true], [3, metadata, true]);
  assert.ok(held.first_stored_ms <= held.stored_ms && Math.abs(held.stored_ms - Date.now()) < 60_000, JSON.stringify(held));
  // A condition that does not hold writes nothing, and says what stands.
  const conflict = await refused(ConflictError, () => write({ ...turn, text: "Other.", expected_version: 2 }));
  assert.deepEqual([conflict.code, conflict.status, conflict.problem.turn, conflict.problem.version], ["conflict", 409, "1", 3]);
  assert.deepEqual((await write({ ...turn, text: "It is in the cellar.", expected_version: 3 })).versions, { 1: 4 });
  await refused(ConflictError, () => write({ ...turn, expected_version: 0 }));
  await refused(ConflictError, () => memory.forget("1", { expectedVersion: 3 }));
  // Together: the second one is refused, so the first one is not there.
  const other = { ...turn, turn: "2", expected_version: 0 };
  await refused(ConflictError, () => write([other, { ...turn, expected_version: 1 }], { together: true }));
  assert.deepEqual((await memory.turns({ turns: ["2"] })).turns, []);
  const gone = { type: "deletion", turn: "1", version: "next", expected_version: 4 };
  const both = await write([other, gone], { together: true });
  assert.equal(both.versions["2"], 1);
  assert.deepEqual((await memory.turns()).turns.map(({ turn }) => turn), ["2"]);
  // What was deleted with a version returns; absent is version 0.
  assert.ok((await write({ ...turn, expected_version: 0 })).versions["1"] > both.versions["1"]);
  // An older version changes nothing, and is named; what was forgotten stays forgotten.
  assert.deepEqual((await write({ ...turn, text: "Old.", version: 1 })).stale, ["1"]);
  await memory.forget("2");
  assert.deepEqual((await write({ ...turn, turn: "2", version: "next" })).forgotten, ["2"]);
  // Of writers that all expect the same, one succeeds.
  const tried = await Promise.allSettled(
    [0, 1, 2, 3, 4, 5].map((n) => write({ ...turn, turn: "race", text: `Writer ${n}.`, expected_version: 0 })),
  );
  assert.equal(tried.filter(({ status }) => status === "fulfilled").length, 1);
  assert.ok(tried.every(({ reason }) => !reason || reason instanceof ConflictError), JSON.stringify(tried));
  // What is not to be recalled is kept and listed, and never quoted.
  await write({ ...turn, turn: "silent", text: "The violin is at the luthier.", recall: false });
  assert.deepEqual((await memory.turns({ turns: ["silent"] })).turns.map(({ text, recall }) => [text, recall]), [["The violin is at the luthier.", false]]);
  assert.doesNotMatch((await memory.ask("Where is the violin?")).context, /luthier/);
}

/** One form of selector chooses turns for questions, lists and deletions. */
async function selectors(url) {
  const memory = new RippleMem(url, { bank: "selectors" });
  const said = (turn, session, metadata, kind = "person") => ({ turn, speaker: "Ann", kind, text: `My ${turn} is red.`, time: new Date(1_700_000_000_000 + Number(metadata.n) * 1_000), session, metadata });
  await memory.remember([
    said("kayak", "trips.lisbon.", { n: 1, tags: ["sea"], ok: true }),
    said("violin", "trips.porto.", { n: 2, tags: [], ok: false }),
    said("accordion", "music.", { n: 3, name: "Marta" }, "assistant"),
    said("bicycle", "trip", { n: 4 }),
  ], { waitMs: 10_000 });
  const ids = async (where, options = {}) => (await memory.turns(where, { order: "oldest", ...options })).turns.map(({ turn }) => turn);
  const condition = (metadata) => ids({ metadata });
  assert.deepEqual(await ids(), ["kayak", "violin", "accordion", "bicycle"]);
  assert.deepEqual(await ids({ session_prefix: "trips." }), ["kayak", "violin"]);
  assert.deepEqual(await ids({ kinds: ["assistant"] }), ["accordion"]);
  assert.deepEqual(await ids({ turns: ["bicycle", "kayak", "none"] }), ["kayak", "bicycle"]);
  assert.deepEqual(await condition({ path: ["n"], in: [1, 4] }), ["kayak", "bicycle"]);
  assert.deepEqual(await condition({ all: [{ path: ["n"], gt: 1 }, { path: ["n"], lte: 3 }] }), ["violin", "accordion"]);
  assert.deepEqual(await condition({ any: [{ path: ["tags"], has: "sea" }, { path: ["name"], eq: "Marta" }] }), ["kayak", "accordion"]);
  assert.deepEqual(await condition({ not: { path: ["ok"], eq: true } }), ["violin", "accordion", "bicycle"]);
  assert.deepEqual(await condition({ path: ["ok"], exists: false }), ["accordion", "bicycle"]);
  await refused(InvalidError, () => condition({ path: ["n"], near: 1 }), "near");
  const { next } = await memory.turns({ session_prefix: "trips." }, { limit: 1 });
  assert.deepEqual(await ids({ session_prefix: "trips." }, { order: "latest", limit: 1, before: next }), ["kayak"]);
  // Before the choice, not after it.
  const where = { metadata: { path: ["n"], gte: 2 }, session_prefix: "trips." };
  const evidence = await memory.ask("What is red?", { where, near: 5, metadata: true });
  assert.deepEqual(evidence.units[0].excerpts[0].metadata, { n: 2, tags: [], ok: false });
  assert.deepEqual(evidence.units.flatMap(({ sources }) => sources), ["violin"]);
  assert.deepEqual((await first(memory.subscribe("What is red?", { where }))).units.flatMap(({ sources }) => sources), ["violin"]);
  const { sessions } = await memory.sessions({ prefix: "trip" });
  assert.deepEqual(sessions.map(({ session, turns }) => [session, turns]), [["trip", 1], ["trips.lisbon.", 1], ["trips.porto.", 1]]);
  const page = await memory.sessions({ limit: 1 });
  assert.deepEqual([page.sessions.map(({ session }) => session), (await memory.sessions({ start: page.next })).sessions.length], [["music."], 3]);
  await memory.nameSession("music.", "What Ann plays");
  assert.equal((await memory.sessions({ prefix: "music" })).sessions[0].title, "What Ann plays");
  const forgotten = await memory.forgetTurns({ session: "music." });
  assert.ok(forgotten.turns === 1 && forgotten.gone, JSON.stringify(forgotten));
  assert.ok(!(await memory.sessions()).sessions.some(({ session, turns }) => session === "music." && turns));
}

/** Names of banks are those of the Python client, and the service takes them. */
async function names(url) {
  const vectors = JSON.parse(await readFile(new URL("../data/bank_names.json", import.meta.url), "utf8"));
  assert.ok(vectors.length >= 12);
  for (const { parts, name } of vectors) {
    assert.equal(bankName(...parts), name);
    assert.equal((await new RippleMem(url, { bank: name }).ask("Who?")).notice.code, "empty_bank");
  }
  for (const wrong of [[], [""], ["a", ""], ["\ud83d"], [1]]) assert.throws(() => bankName(...wrong), /bankName|malformed|URI/);
}

/** What was said on several lines, or with half a character, is stored, quoted and followed. */
async function texts(url) {
  const code = "Try this:\n\n```python\nfor line in lines:\n    print(line)\n```\n- one\r\n- two\u2028- three";
  const memory = new RippleMem(url, { bank: "lines" });
  await memory.remember({ turn: "1", speaker: "Assistant", text: code, time });
  const { context } = await memory.ask("How do I print the lines?");
  const plain = code.replace("\r\n", "\n").replace("\u2028", "\n");
  const [quoted, ...more] = readContext(context);
  assert.deepEqual([quoted.speaker, quoted.passages, more], ["Assistant", [plain], []], context);
  assert.equal((await memory.turns()).turns[0].text, code);
  const named = readContext('## Monday\n"A: \\"b\\"": hi: there\nAnn: one\n\n    two\n[…]\n');
  assert.deepEqual(named.map(({ speaker, passages }) => [speaker, passages]), [
    ['A: "b"', ["hi: there"]],
    ["Ann", ["one\n\ntwo", ""]],
  ]);
  const half = "The kayak \ud83d is red";
  const halves = new RippleMem(url, { bank: "halves" });
  await halves.remember({ turn: "a", speaker: "Ann", text: half, time });
  assert.match((await halves.ask(half, { saidBefore: [{ speaker: "Bo", text: half }] })).context, /kayak/);
  assert.equal((await halves.turns()).turns[0].text, "The kayak \ufffd is red");
  assert.ok((await halves.turns({ mentions: [half] })).turns.length);
  assert.match((await first(halves.subscribe(half))).units[0].restatement, /kayak/);
}

async function many_turns(url) {
  const memory = new RippleMem(url, { bank: "many" });
  const turns = Array.from({ length: 2_500 }, (_, n) => ({ turn: String(n), speaker: "Ann", text: `Number ${n} is on the list.`, time }));
  assert.equal((await memory.remember(turns)).turns, 2_500);
  assert.match((await memory.ask("Is number 2499 on the list?", { timeoutMs: 120_000 })).context, /2499/);
  // Long ones are divided by their bytes, so that no request is larger than the service takes.
  const long = Array.from({ length: 200 }, (_, n) => ({ turn: `long-${n}`, speaker: "Ann", text: `Wort${n} ü `.repeat(5_000), time }));
  assert.equal((await memory.remember(long)).turns, 200);
  // Of writes that overlap, the answer reflects the last one, whichever is answered last.
  const other = new RippleMem(url, { bank: "overlap" });
  const written = await Promise.all(
    Array.from({ length: 16 }, (_, n) => other.remember({ turn: String(n), speaker: "Ann", text: `Plan ${n}.`, time })),
  );
  const last = Math.max(...written.map(({ after }) => Number(after.split(":")[1])));
  const { reflects } = await other.ask("Which plans are there?");
  assert.ok(reflects.some(({ topic, next_offset }) => topic === "turns" && next_offset > last), JSON.stringify(reflects));
}

async function following(url) {
  const [memory, other] = [new RippleMem(url, { bank: "followed" }), new RippleMem(url, { bank: "followed" })];
  const stop = new AbortController();
  const stream = memory.subscribe("Where does Ann live?", { signal: stop.signal });
  const next = async () => (await stream.next()).value;
  const begin = await next();
  assert.deepEqual([begin.units, begin.supported, begin.added], [[], false, undefined]);
  await other.remember(TURNS);
  let now = await next();
  while (!excerpts(now.units).some(({ text }) => text.includes("Lisbon"))) now = await next();
  const asked = await other.ask("Where does Ann live?");
  while (now.units.length < asked.units.length) now = await next();
  assert.deepEqual(now.units.map(({ id }) => id), asked.units.map(({ id }) => id));
  assert.ok((await other.explain("Where does Ann live?", { unit: now.units[0].id })).quoted);
  await other.forget("1");
  while (excerpts(now.units).some(({ text }) => text.includes("Lisbon"))) now = await next();
  // What went is what this follower held: the service names it without its words.
  assert.ok(excerpts(now.removed).some(({ text }) => text.includes("Lisbon")), JSON.stringify(now));
  // A signal ends the stream, also while somebody waits for it.
  const waiting = stream.next();
  stop.abort();
  assert.deepEqual(await waiting, { value: undefined, done: true });
  const rest = [];
  for await (const one of memory.events({ signal: AbortSignal.abort() })) rest.push(one);
  assert.deepEqual(rest, []);
  await refused(InvalidError, () => first(other.subscribe("")), "question");
  await refused(InvalidError, () => other.answer("Where does Ann live?"), "llm.endpoint");
  await refused(InvalidError, () => first(other.answerPieces("Where does Ann live?")), "llm.endpoint");
}

/** What happens in a bank comes once, also where the connection breaks off in between. */
async function events(url) {
  const [memory, other] = [new RippleMem(url, { bank: "watched" }), new RippleMem(url, { bank: "watched" })];
  const stream = memory.events();
  const next = async () => (await stream.next()).value;
  const begin = await next();
  assert.deepEqual([begin.name, begin.data.units], ["progress", 0]);
  await other.remember(TURNS[0]);
  const told = [await next()];
  while (!(told.at(-1).name === "progress" && told.at(-1).data.units)) told.push(await next());
  assert.deepEqual(told.slice(0, 2).map(({ name }) => name), ["turn", "unit_added"]);
  assert.equal(told[0].data.turn, "1");
  await stream.return();
  const progress = (n) => `event: progress\r\nid: 0:${n}:0\r\ndata: {"units": ${n}}\r\n\r\n`;
  const turn = 'event: turn\ndata: {"turn":\ndata: "1\u2028"}\n\n';
  // The first connection ends before the progress that the turn leads to; the second one breaks, the third is refused.
  const server = await answering((response, nth) => {
    if (nth === 2) return response.destroy();
    if (nth === 3) return send(response, 503, { code: "loading", detail: "wait", status: 503 }, { "retry-after": "1" });
    send(response, 200, nth === 1 ? progress(1) + turn : turn + progress(2), { "content-type": "text/event-stream" });
  });
  const again = new RippleMem(server.url, { bank: "b", token: "secret" }).events();
  const seen = [];
  for await (const event of again) if (seen.push(event) === 3) break;
  assert.deepEqual(seen.map(({ name }) => name), ["progress", "turn", "progress"]);
  assert.deepEqual([seen[1].data.turn, seen[2].data.units], ["1\u2028", 2]);
  const shown = server.asked.map(({ headers }) => [headers["last-event-id"], headers.authorization, headers.accept]);
  assert.deepEqual(shown[0], [undefined, "Bearer secret", "text/event-stream"]);
  assert.deepEqual(shown.slice(1).map(([id]) => id), ["0:1:0", "0:1:0", "0:1:0"]);
  server.end();
}

/** A profile comes at first, and again once it changed. */
async function profiles(url) {
  const memory = new RippleMem(url, { bank: "known" });
  const stream = memory.profiles({ person: "Ann" });
  const next = async () => (await stream.next()).value.lines.map(({ text }) => text);
  assert.deepEqual(await next(), []);
  await memory.remember({ turn: "1", speaker: "Ann", text: "I live in Oslo.", time: TURNS[0].time, session: "s" });
  assert.deepEqual(await next(), ["I live in Oslo."]);
  await stream.return();
  const shown = await memory.profile({ begin: true, kinds: ["instruction", "fact"], where: { session: "s" }, mostTokens: 90 });
  assert.deepEqual([shown.lines.length, shown.sessions[0].session, shown.sessions[0].begins.text], [1, "s", "I live in Oslo."]);
  assert.equal((await memory.profile({ where: { since: new Date() } })).lines.length, 0);
  await refused(InvalidError, () => memory.profile({ asOf: "noon" }), "as_of");
}

async function in_words(url) {
  const memory = new RippleMem(url, { bank: "sample/harbour" });
  const question = "Which books has Marta recommended to Elias?";
  const answer = await memory.answer(question);
  assert.ok(answer.text && answer.took, JSON.stringify(answer));
  let words = "";
  let last;
  for await (const piece of memory.answerPieces(question)) {
    words = piece.restart ? "" : words + piece.text;
    last = piece;
  }
  assert.equal(last.answer.text, answer.text);
  assert.equal(words.trim(), answer.text);
}

async function past(url) {
  const memory = new RippleMem(url, { bank: "past" });
  for (const turn of [...TURNS, { ...TURNS[1], text: "My sister Clara keeps goats in Porto.", version: 1 }]) {
    await memory.ask("Who keeps bees?", { after: (await memory.remember(turn)).after });
  }
  const { points } = await memory.history();
  const [start, end] = [points[1].offset, points.at(-1).offset];
  const diff = await memory.diff(start, { end });
  assert.deepEqual([diff.from, diff.to], [start, end]);
  assert.ok(diff.units_added.some(({ label }) => label.includes("goats")), JSON.stringify(diff));
  assert.ok(diff.units_removed.some(({ label }) => label.includes("bees")), JSON.stringify(diff));
  assert.deepEqual((await memory.diff(start)).units_added, diff.units_added);
  assert.match((await memory.ask("Who keeps bees?", { asOf: start })).context, /bees/);
  await refused(InvalidError, () => memory.diff(end, { end: start }), "name the earlier first");
}

async function problems(url) {
  const memory = new RippleMem(url);
  await refused(TypeError, () => memory.ask("Who?"), "no bank");
  const nothing = await memory.ask("Who?", { bank: "nobody" });
  assert.deepEqual([nothing.notice.code, nothing.units, nothing.supported], ["empty_bank", [], false]);
  const unknown = await refused(UnknownBankError, () => memory.digest({ bank: "nobody" }));
  assert.deepEqual([unknown.code, unknown.status, unknown.temporary, unknown.name], ["unknown_bank", 404, false, "RippleMemError"]);
  assert.ok(unknown instanceof RippleMemError && unknown.problem.detail === unknown.detail && unknown.detail === unknown.message);
  for (const wrong of ["127.0.0.1:8321", "localhost:8321", "example.org", "//127.0.0.1:8321", "ftp://127.0.0.1", "http:/a", "", "[::1]:8321"]) {
    await refused(TypeError, async () => new RippleMem(wrong), "http://");
  }
  await refused(TypeError, async () => new RippleMem("127.0.0.1:8321"), "http://127.0.0.1:8321");
  const secret = await refused(TypeError, async () => new RippleMem(url, { token: "secret\n" }), "token");
  assert.ok(!secret.message.includes("secret"), "a token is in no message");
  const b = { bank: "b" };
  const turn = { turn: "1", speaker: "Ann", text: "Hi", time: "2024-05-06T09:00:00Z" };
  await refused(InvalidError, () => memory.ask("Who?", { bank: "../etc" }), "bank");
  await refused(InvalidError, () => memory.remember({ ...turn, speaker: "" }, b), "speaker");
  await refused(InvalidError, () => memory.remember({ ...turn, time: "noon" }, b), "time");
  await refused(RangeError, () => memory.remember({ ...turn, time: new Date("noon") }, b), "nvalid");
  await refused(TypeError, () => memory.remember({ ...turn, version: 2 ** 53 }, b), "2^53");
  const away = await refused(UnreachableError, () => new RippleMem("http://127.0.0.1:9", b).ask("Who?"), "ripplemem serve");
  assert.ok(away.temporary && away.code === "unreachable" && away.status === 0);
}

async function tools(url) {
  const memory = new RippleMem(url, { bank: "tools" });
  assert.match(await callTool(memory, "recall", { question: "Who?" }), /holds nothing/);
  assert.match(await callTool(memory, "remember", { speaker: "Ann", text: "I keep bees in Porto." }), /^remembered as turn [0-9]+-[0-9]+$/);
  assert.match(await callTool(memory, "recall", { question: "Where does Ann keep bees?" }), /Porto/);
  assert.equal(await callTool(memory, "remember", {}), "remember: speaker is missing");
  assert.match(await callTool(memory, "shout", {}), /no such tool; there are remember, recall/);
  assert.match(await callTool(memory, "remember", { speaker: "", text: "Hi" }), /^remember: .*speaker/);
  // A model is told the same by both clients.
  const python = await readFile(new URL("../../clients/python/src/ripplemem/tools.py", import.meta.url), "utf8");
  for (const { function: of } of TOOLS) {
    const texts = [of.name, of.description, ...Object.entries(of.parameters.properties).flatMap(([name, field]) => [name, field.description])];
    for (const text of texts) assert.ok(python.includes(JSON.stringify(text)), text);
  }
}

/** A service that is busy twice is asked a third time; one that stays busy is told as such. */
async function retries() {
  const busy = { detail: "wait", code: "busy", status: 429 };
  const server = await answering((response, nth) => {
    if (nth === 3) return send(response, 200, { banks: ["b"] });
    send(response, 429, busy, { "retry-after": nth < 3 ? "1" : "0" });
  });
  const memory = new RippleMem(server.url, { token: "secret" });
  const started = Date.now();
  assert.deepEqual(await memory.banks(), ["b"]);
  assert.ok(Date.now() - started >= 1_900, "Retry-After is heeded");
  assert.deepEqual(server.asked.map(({ headers }) => headers.authorization), Array(3).fill("Bearer secret"));
  assert.ok((await refused(BusyError, () => memory.banks(), "wait")).temporary);
  assert.equal(server.asked.length, 6);
  server.end();
  // A connection that breaks, before and within the answer, is made again; a page of a proxy is no answer.
  const broken = await answering((response, nth) => {
    if (nth === 1) return response.destroy();
    if (nth === 2) {
      response.writeHead(200, { "content-length": "100" });
      response.write('{"banks": [');
      return setTimeout(() => response.destroy(), 20);
    }
    send(response, 200, nth === 3 ? { banks: [] } : "<html>welcome</html>");
  });
  const breaking = new RippleMem(broken.url);
  assert.deepEqual(await breaking.banks(), []);
  await refused(RippleMemError, () => breaking.banks(), "HTTP 200: <html>");
  assert.equal(broken.asked.length, 4);
  // A write on a condition whose answer is lost may have been written: it is sent once.
  const lost = await answering((response) => response.destroy());
  const writing = new RippleMem(lost.url, { bank: "b" });
  const turn = { ...TURNS[0], text: 'She said: {"expected_version": 1}' };
  await refused(UnreachableError, () => writing.remember({ ...turn, expected_version: 0 }));
  await refused(UnreachableError, () => writing.remember([turn, { ...turn, turn: "2" }], { together: true }));
  await refused(UnreachableError, () => writing.forget("1", { expectedVersion: 1 }));
  assert.equal(lost.asked.length, 3);
  await refused(UnreachableError, () => writing.remember(turn));
  assert.equal(lost.asked.length, 6);
  lost.end();
  broken.end();
  // A request is not sent again when its time is over, or when its caller gave it up.
  const stop = new AbortController();
  const silent = await answering((_, nth) => {
    if (nth === 1) stop.abort(new Error("given up"));
  });
  const waiting = new RippleMem(silent.url, { bank: "b" });
  await refused(Error, () => waiting.ask("Who?", { signal: stop.signal }), "given up");
  const late = await refused(RippleMemError, () => waiting.forget("1", { waitMs: -4_000 }), "no answer in time");
  assert.deepEqual([late.code, late.temporary], ["deadline", true]);
  assert.ok(silent.asked.length <= 2, `${silent.asked.length}`);
  silent.end();
  // A redirect is an error: it would take the token elsewhere.
  const moved = await answering((response) => send(response, 308, "", { location: "http://127.0.0.1:9/" }));
  await refused(RippleMemError, () => new RippleMem(moved.url).banks(), "308");
  moved.end();
}

/** A service that names the holder of a bank is left for it, once a call. */
async function follows(url) {
  let holder = url;
  const server = await answering((response) =>
    send(response, 421, { detail: "ask there", code: "misdirected", status: 421, holder }),
  );
  // Counted here: the platform may send a request again on a new connection when it is answered with 421.
  let sent = [];
  const counting = (address, request) => {
    sent.push(String(address).startsWith(server.url) ? "here" : "there");
    return fetch(address, request);
  };
  const memory = new RippleMem(server.url, { bank: "b", token: "secret", fetch: counting });
  await memory.remember(TURNS[0]);
  assert.match((await memory.ask("Where does Ann live?")).context, /Lisbon/);
  assert.deepEqual(sent, ["here", "there", "here", "there"]);
  assert.ok(server.asked.every(({ headers }) => headers.authorization === "Bearer secret"));
  assert.match((await first(memory.subscribe("Where does Ann live?"))).units[0].restatement, /Lisbon/);
  // Instances that name each other are not followed for ever.
  holder = server.url;
  sent = [];
  const error = await refused(RippleMemError, () => memory.ask("Who?"), "ask there");
  assert.deepEqual([error.code, error.status, sent], ["misdirected", 421, ["here", "here"]]);
  // A holder that has ended: the service is asked again, who has the bank now.
  holder = "http://127.0.0.1:9";
  sent = [];
  await refused(UnreachableError, () => memory.ask("Who?"), "127.0.0.1:9");
  assert.deepEqual(sent, ["here", "there", "here", "there", "here", "there"]);
  server.end();
  // From TLS nothing goes to plain text.
  sent = [];
  const scripted = async (address) => {
    sent.push(String(address));
    const holder = sent.length === 1 ? "https://b.example/" : "http://c.example";
    return new Response(JSON.stringify({ detail: "ask there", code: "misdirected", status: 421, holder }), { status: 421 });
  };
  const over = new RippleMem("https://a.example/memory/", { fetch: scripted });
  await refused(RippleMemError, () => over.banks(), "ask there");
  await refused(RippleMemError, () => over.banks(), "ask there");
  await refused(RippleMemError, () => first(over.events({ bank: "b" })), "ask there");
  const [a, b] = ["https://a.example/memory/v1/banks", "https://b.example/v1/banks"];
  assert.deepEqual(sent, [a, b, a, "https://a.example/memory/v1/events?bank=b"]);
}

async function denied(url, token) {
  const wrong = new RippleMem(url, { bank: "acme/support", token: "wrong" });
  await refused(DeniedError, () => wrong.ask("Who?"), "not known");
  const memory = new RippleMem(url, { bank: "acme/support", token });
  await memory.remember(TURNS);
  const other = { bank: "other" };
  await refused(DeniedError, () => memory.remember(TURNS[0], other), "other");
  const held = await memory.token();
  assert.deepEqual([held.name, held.rights, held.banks], ["agent", ["read", "write", "forget"], ["acme"]]);
  await refused(DeniedError, () => memory.history(other), "other");
  await refused(DeniedError, () => first(memory.events(other)), "other");
  await refused(DeniedError, () => first(memory.subscribe("Who?", other)), "other");
}

/** Streams go on after the service was killed and came back. */
async function resumes(_url, more) {
  const [program, ...args] = JSON.parse(more);
  const port = await new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
  const url = `http://127.0.0.1:${port}`;
  const start = async () => {
    const service = spawn(program, [...args, "--listen", `127.0.0.1:${port}`], { stdio: "ignore" });
    for (let tries = 0; tries < 600; tries += 1) {
      if (await fetch(`${url}/ready`).then((response) => response.ok, () => false)) return service;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error("the service does not start");
  };
  const killed = (service) => new Promise((resolve) => service.on("exit", resolve).kill("SIGKILL"));
  let service = await start();
  try {
    const memory = new RippleMem(url, { bank: "b" });
    const [asked, happened] = [memory.subscribe("Who keeps bees?"), memory.events()];
    await memory.remember(TURNS[0]);
    await memory.ask("Who?");
    let now = (await asked.next()).value;
    while (now.units.length < 1) now = (await asked.next()).value;
    const seen = [];
    do seen.push((await happened.next()).value);
    while (!(seen.at(-1).name === "progress" && seen.at(-1).data.units));
    const [evidence, event] = [asked.next(), happened.next()];
    await killed(service);
    service = await start();
    await memory.remember(TURNS[1]);
    now = (await evidence).value;
    while (!excerpts(now.units).some(({ text }) => text.includes("bees"))) now = (await asked.next()).value;
    seen.length = 0;
    seen.push((await event).value);
    while (!seen.some(({ name, data }) => name === "progress" && data.units === 2)) seen.push((await happened.next()).value);
    const turns = seen.filter(({ name }) => name === "turn").map(({ data }) => data.turn);
    assert.ok(turns.length <= 1 && !turns.includes("1"), JSON.stringify(seen));
    await Promise.all([asked.return(), happened.return()]);
  } finally {
    await killed(service);
  }
}

const checks = { each_call, circumstances, names, selectors, texts, writes, many_turns, following, events, profiles, in_words, past, problems, tools };
const others = { retries, follows, denied, resumes };
const [url, name, more] = globalThis.process.argv.slice(2);
await { ...checks, ...others }[name](url, more);
