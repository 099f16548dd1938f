// What the page says of an answer, without a browser.
import assert from "node:assert/strict";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL("..", import.meta.url));

/** A module of the page, as Node runs it. */
async function load(path) {
  globalThis.location ??= { hash: "" };
  globalThis.addEventListener ??= () => {};
  const { outputFiles } = await build({
    absWorkingDir: here,
    entryPoints: [path],
    bundle: true,
    format: "esm",
    write: false,
    jsx: "automatic",
    jsxImportSource: "preact",
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}

const seen = (id, provenance, kept = true) => ({ id, restatement: `says ${id}`, kept, provenance });
const familiar = (rank, share) => ({ reached_by: "familiar", rank, score: share, share, terms: {} });
const over = (channel, rank, familiarity, path) => ({
  reached_by: "expansion",
  channel,
  rank,
  score: familiarity,
  familiarity,
  target_match: 0,
  hops: path.length,
  path,
  path_weight: 1,
});
const edge = (from, to, channel) => ({ from, to, channel, weight: 0.5 });
const unit = (id, provenance, minute) => ({
  id,
  restatement: `says ${id}`,
  said_at: `2024-03-02T09:${String(minute).padStart(2, "0")}:00+01:00`,
  sources: [`t-${id}`],
  excerpts: [],
  rho: 0.5,
  anchor: id === "a",
  provenance: [provenance],
});

/** Two units of the first hop, one that the walk adds over two edges, one that it leaves, one near miss. */
const answer = () => ({
  question: { bank: "b", text: "Where?" },
  supported: true,
  sufficiency: 0.8,
  tokens: { spent: 90, most: 900 },
  units: [
    unit("a", familiar(1, 1), 1),
    unit("b", familiar(2, 0.6), 2),
    unit("d", over("structural", 1, 0.4, [edge("a", "c", "structural"), edge("c", "d", "structural")]), 3),
  ],
  trace: {
    cues: { keywords: ["where"], semantic_query: "Where?" },
    scale: { zero: 0, best: 1, cutoff: 0.5, floor: 0.3, parts_total: 9, scored: "every_part" },
    first_hop: [seen("a", familiar(1, 1)), seen("b", familiar(2, 0.6))],
    near: [
      {
        id: "n",
        part: 0,
        turn: "t-n",
        speaker: "Ann",
        text: "no",
        said_at: "2024-03-03T09:00:00Z",
        rank: 7,
        share: 0.45,
        score: 0.45,
        terms: {},
      },
    ],
    rounds: [
      {
        plan: { proceed: true, sufficiency: 0.5, reason: "thin", anchors: ["a"], target: { sentence: "A place." } },
        reached: 3,
        support: [
          seen("d", over("structural", 1, 0.4, [edge("a", "c", "structural"), edge("c", "d", "structural")])),
          seen("e", over("semantic", 1, 0.1, [edge("a", "e", "semantic")]), false),
        ],
        reflects: [],
        walk: {
          units: [{ id: "c", label: "between", said_at: "2024-03-02T09:09:00Z", share: 0.1, state: "reached" }],
          edges: [],
          truncated: 0,
        },
      },
    ],
  },
});

test("an answer has its steps, and each says what came", async () => {
  const { rippleOf } = await load("src/ask/ripple.ts");
  const ripple = rippleOf(answer());
  assert.deepEqual(
    ripple.steps.map((step) => step.name),
    ["Question", "First hop", "Plan", "Hop 1", "Hop 2", "Evidence"],
  );
  assert.equal(
    ripple.steps[1].sentence,
    "First hop: 2 units of 9 parts that were scored; the cutoff was 0.50; 1 near miss shown.",
  );
  assert.equal(ripple.steps[3].sentence, "Hop 1: 1 unit over semantic edges; 0 kept.");
  assert.equal(
    ripple.steps[4].sentence,
    "Hop 2: 1 unit over structural edges; 1 kept. The walk reached 3 units in all.",
  );
  assert.equal(ripple.steps[5].sentence, "Evidence: 3 units, 90 tokens; 2 by the first hop, 1 by the walk alone.");
});

test("each unit stands once, with what became of it and why", async () => {
  const { rippleOf } = await load("src/ask/ripple.ts");
  const ripple = rippleOf(answer());
  const fates = Object.fromEntries(ripple.units.map((unit) => [unit.id, unit.fate]));
  assert.deepEqual(fates, { a: "evidence", b: "evidence", d: "evidence", e: "considered", c: "reached", n: "near" });
  const of = (id) => ripple.units.find((unit) => unit.id === id);
  assert.deepEqual([of("a").place, of("b").place, of("d").place], [1, 2, 3]);
  assert.deepEqual([of("d").hops, of("d").from, of("d").over], [2, "c", "structural"]);
  assert.equal(of("c").label, "between");
  assert.equal(of("e").reason, "familiarity 0.10, below the floor 0.30");
  assert.equal(of("n").reason, "share 0.45, below the cutoff 0.50; number 7 of all parts");
  // The edges of a path that led to evidence are marked, and stand in the steps in which they are walked.
  const kept = ripple.edges.filter((edge) => edge.kept).map((edge) => [edge.from, edge.to, edge.step]);
  assert.deepEqual(kept, [
    ["a", "c", 3],
    ["c", "d", 4],
  ]);
});

test("without a scale nothing has a share, and a path keeps the units on its way", async () => {
  const { rippleOf } = await load("src/ask/ripple.ts");
  const plain = answer();
  plain.trace.scale = undefined;
  plain.trace.near = undefined;
  plain.trace.rounds[0].walk = undefined;
  for (const { provenance } of plain.trace.first_hop) provenance.share = undefined;
  const ripple = rippleOf(plain);
  assert.deepEqual(
    ripple.units.map((unit) => unit.share),
    ripple.units.map(() => undefined),
  );
  const between = ripple.units.find((unit) => unit.id === "c");
  assert.deepEqual([between.fate, between.from, between.step], ["reached", "a", 3]);
  assert.equal(ripple.edges.length, 3);
});

test("a round that stops has no hops, and an answer that nothing supports says so", async () => {
  const { rippleOf } = await load("src/ask/ripple.ts");
  const none = answer();
  none.supported = false;
  none.trace.rounds = [
    { plan: { proceed: false, sufficiency: 1, reason: "enough", anchors: [] }, reached: 0, support: [], reflects: [] },
  ];
  const ripple = rippleOf(none);
  assert.deepEqual(
    ripple.steps.map((step) => step.name),
    ["Question", "First hop", "Plan", "Evidence"],
  );
  assert.match(ripple.steps[2].sentence, /stops, enough/);
  assert.match(ripple.steps[3].sentence, /does not know/);
});

test("the distance of a unit is its share, and the angle the time", async () => {
  const { rippleOf } = await load("src/ask/ripple.ts");
  const { layoutOf } = await load("src/ask/layout.ts");
  const ripple = rippleOf(answer());
  const layout = layoutOf(ripple);
  for (const unit of ripple.units) {
    const { x, y } = layout.points.get(unit.id);
    assert.ok(Math.abs(Math.hypot(x, y) - layout.radius(unit.share)) < 1e-9, unit.id);
  }
  assert.ok(layout.radius(1) < layout.radius(0.5) && layout.radius(0.5) < layout.radius(0.3));
  const clockwise = (id) => {
    const { x, y } = layout.points.get(id);
    return (Math.atan2(x, -y) + 2 * Math.PI) % (2 * Math.PI);
  };
  assert.ok(clockwise("a") < clockwise("b") && clockwise("b") < clockwise("d") && clockwise("d") < clockwise("n"));
  assert.deepEqual(
    layout.sectors.map((sector) => sector.label),
    ["2 Mar 2024", "3 Mar 2024"],
  );
  assert.deepEqual(layoutOf(rippleOf(answer())).points, layout.points);
});

test("two thousand units are laid out without moving them apart", async () => {
  const { layoutOf } = await load("src/ask/layout.ts");
  const units = Array.from({ length: 2000 }, (_, i) => ({
    id: `u${i}`,
    label: "",
    share: (i % 100) / 100,
    fate: "reached",
    anchor: false,
    hops: 1,
    step: 1,
    saidAt: "2024-01-01T00:00:00Z",
  }));
  assert.equal(layoutOf({ units, edges: [], steps: [] }).points.size, 2000);
});

test("a place is its fragment, and back", async () => {
  const { hashOf, parsePlace } = await load("src/route.ts");
  const parameters = { bank: "acme/support", q: "Where, when & why?", asof: "252" };
  assert.deepEqual(parsePlace(hashOf("trace", parameters)), { screen: "trace", parameters });
  assert.deepEqual(parsePlace(""), { screen: "ask", parameters: {} });
  assert.equal(parsePlace("#/nowhere").screen, "ask");
});

test("events and changes of a followed question", async () => {
  const { parseEvent } = await load("src/service.ts");
  const { withDelta, withSnapshot } = await load("src/live.tsx");
  assert.deepEqual(parseEvent('event: delta\nid: x-1\ndata: {"a":1}'), { event: "delta", id: "x-1", data: { a: 1 } });
  assert.equal(parseEvent(": quiet"), undefined);
  const empty = { units: new Map(), order: [], fresh: new Set() };
  const held = withSnapshot(withSnapshot(empty, 0, [{ id: "a" }]), 1, [{ id: "b" }]);
  assert.deepEqual(held.order, ["a", "b"]);
  const changed = withDelta(held, {
    added: [{ rank: 0, unit: { id: "c" } }],
    removed: [{ rank: 0, id: "a" }],
    updated: [{ rank: 1, unit: { id: "b", restatement: "other" } }],
    moved: [],
    order: ["c", "b"],
  });
  assert.deepEqual(
    [[...changed.units.keys()].sort(), changed.order, [...changed.fresh], changed.units.get("b").restatement],
    [["b", "c"], ["c", "b"], ["c", "b"], "other"],
  );
});

test("times and amounts in words", async () => {
  const words = await load("src/words.ts");
  assert.equal(words.saidAt("2024-03-02T09:15:00+01:00"), "2 Mar 2024, 09:15");
  assert.equal(words.saidAt("soon"), "soon");
  assert.equal(words.bytes(1536), "1.5 KiB");
  assert.equal(words.plural(1, "unit"), "1 unit");
  assert.equal(words.plural(1200, "near miss", "near misses"), "1,200 near misses");
  assert.equal(words.ago(0, 3_600_000 * 5), "5 h ago");
});

const turnOf = (turn, found, more = {}) => ({ turn, speaker: "Ann", text: `says ${turn}`, units: [], found, ...more });
const lostAt = (unit) => ({
  at: "cutoff",
  sentence: "Number 9.",
  standing: { unit, said_at: "2024-03-04T09:00:00Z", rank: 9, parts: 9, share: 0.2, last_quoted: 0.5 },
});

test("expected evidence is ringed, found or lost, and what no step names stands where it was scored", async () => {
  const { expectedRipple } = await load("src/report/expected.ts");
  const asked = answer();
  asked.units[0].excerpts = [{ turn: "t1", speaker: "Ann", said_at: asked.units[0].said_at, text: "yes" }];
  const { ripple, ringed } = expectedRipple({
    answer: asked,
    evidence: [
      turnOf("t1", true, { units: ["a"] }),
      turnOf("t2", false, { units: ["a"], lost: lostAt("a") }),
      turnOf("t3", false, { units: ["n"], lost: lostAt("n") }),
      turnOf("t4", false, { units: ["z"], lost: lostAt("z") }),
      turnOf("t5", false, { lost: { at: "unit", sentence: "No unit." } }),
    ],
  });
  assert.deepEqual(
    [...ringed],
    [
      ["a", "found"],
      ["n", "lost"],
      ["z", "lost"],
    ],
  );
  const unit = (id) => ripple.units.find((unit) => unit.id === id);
  assert.equal(unit("n").reason, "Number 9.", "a near miss says where it was lost");
  assert.deepEqual([unit("z").fate, unit("z").share, unit("z").saidAt.slice(0, 10)], ["near", 0.2, "2024-03-04"]);
  assert.equal(unit("a").fate, "evidence");
});

test("a question is found, missed, or expects nothing, and filters join", async () => {
  const { filtered, outcomeOf } = await load("src/report/expected.ts");
  const line = (found, evidence, more = {}) => ({ found, evidence, category: "a", lost_at: [], ...more });
  const lines = [
    line(2, 2),
    line(1, 2, { lost_at: ["walk"] }),
    line(0, 1, { category: "b", lost_at: ["cutoff"] }),
    line(0, 1, { supported: false }),
    line(0, 0),
  ];
  assert.deepEqual(lines.map(outcomeOf), ["found", "missed", "missed", "unasked", "unasked"]);
  const counts = [
    {},
    { show: "missed" },
    { show: "missed", category: "b" },
    { lost: "walk" },
    { show: "found", lost: "walk" },
  ];
  assert.deepEqual(
    counts.map((filter) => filtered(lines, filter).length),
    [5, 2, 1, 1, 0],
  );
});

test("the rows of Live follow the events, and no more than 500 are kept", async () => {
  const { rowsOf, withEvent, MOST_ROWS } = await load("src/arrivals.ts");
  const turn = (id, more = {}) => ({
    event: "turn",
    data: { turn: id, speaker: "Ann", time: "2024-05-01T10:00:00Z", session: "s", text: `says ${id}`, ...more },
  });
  const added = (id, ...turns) => ({ event: "unit_added", data: { id, label: "", said_at: "", session: "s", turns } });
  let rows = rowsOf([{ turn: "0", short: "0", speaker: "Bo", time: "2024-05-01T09:00:00Z", text: "hi" }]);
  for (const event of [turn("1"), added("u1", "1"), turn("2"), added("u2", "2")]) rows = withEvent(rows, event);
  const facts = () => rows.map((row) => [row.turn, row.text, row.units.join(), row.closed, row.fresh].join(" ").trim());
  assert.deepEqual(facts(), ["2 says 2 u2 false true", "1 says 1 u1 false true", "0 hi  false false"]);
  rows = withEvent(rows, { event: "window", data: { session: "s", start: 0, turns: ["1", "2"] } });
  for (const id of ["u1", "u2"]) rows = withEvent(rows, { event: "unit_removed", data: { id } });
  for (const event of [added("u3", "1", "2"), turn("2", { text: "edited" })]) rows = withEvent(rows, event);
  assert.deepEqual(facts().slice(0, 2), ["2 edited u3 true true", "1 says 1 u3 true true"]);
  rows = withEvent(rows, turn("1", { text: "", speaker: "", deleted: true }));
  assert.deepEqual([rows[1].deleted, rows[1].text], [true, ""]);
  // What is rejected is a row of its own: the turn of that id stays as it is.
  rows = withEvent(rows, { event: "rejected", data: { offset: 7, turn: "2", reason: "no time" } });
  rows = withEvent(rows, turn("2", { text: "once more" }));
  assert.deepEqual([rows[0].rejected, rows[0].text, rows[1].text], [{ reason: "no time", offset: 7 }, "", "once more"]);
  for (let i = 0; i < 600; i++) rows = withEvent(rows, turn(`more ${i}`));
  assert.equal(rows.length, MOST_ROWS);
  assert.equal(rows[0].turn, "more 599");
});

test("changes are counted with those that are not listed, and the other ends of edges are looked up", async () => {
  const { countsOf, unnamed } = await load("src/changes.tsx");
  const unit = (id) => ({ id, label: `says ${id}`, said_at: "2024-05-01T10:00:00Z", session: "s" });
  const edge = (from, to) => ({ from, to, channel: "semantic", weight: 0.5 });
  const none = { units_added: 0, units_removed: 0, edges_added: 0, edges_removed: 0 };
  const lists = { units_removed: [unit("b")], edges_added: [edge("a", "c")], edges_removed: [edge("b", "d")] };
  const diff = { bank: "x", from: "1", to: "2", units_added: [unit("a")], ...lists, skipped: none };
  assert.deepEqual(countsOf(diff), ["units +1 −1", "edges +1 −1"]);
  const skipped = { ...none, units_added: 1500, edges_removed: 1 };
  assert.deepEqual(countsOf({ ...diff, skipped }), ["units +1,501 −1", "edges +1 −2", "1,501 changes not listed"]);
  assert.deepEqual(unnamed(diff), ["c", "d"]);
});

test("a map has a place for every unit, in the order of time, and fills its lines", async () => {
  const { mapOf } = await load("src/map.tsx");
  const unit = (id, said_at, session) => ({ id, label: id, said_at, session });
  const { spots, ticks } = mapOf([
    unit("c", "2024-05-03T10:00:00Z", "two"),
    unit("a", "2024-05-01T10:00:00Z", "one"),
    unit("b", "2024-05-01T12:00:00+02:00", "two"),
  ]);
  const places = spots.map(({ unit, x, y }) => `${unit.id} ${x} ${y}`);
  assert.deepEqual(places, ["a 0.125 0.5", "b 0.625 0.5", "c 0.875 0.5"]);
  assert.deepEqual(
    ticks.map(({ label }) => label),
    ["1 May 2024"],
  );
  assert.deepEqual(mapOf([]).spots, []);
  // However many sessions there are, in turn or in parallel, each half of the picture has a share of the units, and no
  // two of them the same place.
  for (const sessions of [1, 7, 60, 600]) {
    for (const inTurn of [true, false]) {
      const of = (i) => (inTurn ? Math.floor((i * sessions) / 600) : i % sessions);
      const many = Array.from({ length: 600 }, (_, i) =>
        unit(`u${i}`, new Date(Date.UTC(2024, 0, 1) + i * 3_600_000).toISOString(), `s${of(i)}`),
      );
      const { spots } = mapOf(many);
      assert.equal(new Set(spots.map(({ x, y }) => `${x} ${y}`)).size, 600);
      for (const [left, top] of [
        [true, true],
        [true, false],
        [false, true],
        [false, false],
      ]) {
        const quarter = spots.filter(({ x, y }) => x < 0.5 === left && y < 0.5 === top).length;
        assert.ok(quarter > 60, `${quarter} of 600 in a quarter, of ${sessions} sessions`);
      }
    }
  }
});

test("examples name people, and no program", async () => {
  const { examplesOf } = await load("src/ask/ask.tsx");
  const said = (speaker, kind) => ({ speaker, kind });
  const three = [said("Assistant", "assistant"), said("Ann", "person"), said("days_until", "tool")];
  const mine = ["What do I plan to do?", "What changed for me?", "Where was I last?"];
  assert.deepEqual(examplesOf(three), mine);
  assert.deepEqual(examplesOf([said("assistant"), said("user"), said("Claude"), said("Weather Bot")]), mine);
  assert.match(examplesOf([...three, said("Bo", "person")])[1], /Ann and Bo/);
  assert.ok(examplesOf([said("Assistant")]).every((question) => !question.includes("Assistant")));
  assert.deepEqual(examplesOf([]), []);
});

test("flat and recollection are two lists with what they share, and one list of both", async () => {
  const { comparisonOf } = await load("src/ask/compare.ts");
  const flat = (id, score) => ({
    id,
    label: `Ann: ${id}`,
    said_at: "2024-03-02T09:00:00Z",
    turns: [id],
    score,
    tokens: 9,
  });
  const compared = answer();
  compared.tokens.spent = 1355;
  const words = { tokens: 1341, units: [flat("b", 0.9), flat("x", 0.5), flat("a", 0.1)] };
  compared.flat = { words, meaning: { tokens: 0, units: [] }, same_score: { tokens: 0, units: [] } };
  const { sentence, ...lists } = comparisonOf(compared, "words");
  assert.equal(sentence, "flat 3 units, 1,341 tokens · recollection 3, 1,355 · 2 in both");
  const places = (list) => lists[list].map((unit) => [unit.id, unit.flat, unit.recollection]);
  const [a, b, d, x] = [
    ["a", 3, 1],
    ["b", 1, 2],
    ["d", undefined, 3],
    ["x", 2, undefined],
  ];
  assert.deepEqual(places("flat"), [b, x, a]);
  assert.deepEqual(places("recollection"), [a, b, d]);
  assert.deepEqual(places("merged"), [a, b, x, d]);
  assert.equal(
    comparisonOf(compared, "meaning").sentence,
    "flat 0 units, 0 tokens · recollection 3, 1,355 · 0 in both",
  );
  assert.equal(comparisonOf(answer(), "words"), undefined);
});

test("what was sampled grows a second, and not over a start", async () => {
  const { sampleOf, perSecond } = await load("src/samples.ts");
  const status = (after, total) => ({ behind: 2, after, questions: { total, p50_ms: 3, p99_ms: 8 } });
  const samples = [
    sampleOf(status("0:9,3:4", 10), 1000),
    sampleOf(status("0:19,3:4", 11), 3000),
    sampleOf(status("0:0", 0), 4000),
    sampleOf({ behind: 0, after: "" }, 5000),
  ];
  assert.deepEqual(samples[0], { at: 1000, behind: 2, turns: 15, questions: 10, p99: 8 });
  assert.deepEqual(samples[3], { at: 5000, behind: 0, turns: undefined, questions: undefined, p99: undefined });
  assert.deepEqual(perSecond(samples, "turns"), [5, undefined, undefined]);
  assert.deepEqual(perSecond(samples, "questions"), [0.5, undefined, undefined]);
});

const { periodWords } = await load("src/ask/asked.tsx");

test("the time that a question names is told with its ends, its clock and its use", () => {
  const october = {
    words: ["last", "month"],
    from: "2026-10-01T00:00:00+02:00",
    until: "2026-10-31T23:59:00+01:00",
    clock: "asker",
    reading: "certain",
    of: "said_or_happened",
    used: "weighs",
    parts: 12,
  };
  assert.equal(
    periodWords(october),
    "Time “last month”: from 1 Oct 2026, 00:00 to 31 Oct 2026, 23:59, by the asker's clock. " +
      "What was said or happens then scores higher; 12 parts lie in it.",
  );
  const before = {
    ...october,
    from: undefined,
    clock: "turns",
    reading: "likely",
    of: "said",
    used: "chooses",
    parts: 1,
  };
  assert.equal(
    periodWords(before),
    "Time “last month”: until 31 Oct 2026, 23:59, by the clock of each turn, as far as it could be inferred. " +
      "What was said then comes first; 1 part lies in it.",
  );
});
