// The page in a browser, against a running service.
//
// In: CONSOLE, the address of a service with the sample in `sample/harbour` and no tokens; CONSOLE_TOKENS, that of one
// that asks for tokens, with READER, a token for `sample`; REVOKE, a command that revokes it; CHROMIUM, the browser;
// PICTURES, a folder for what the page looks like.
import assert from "node:assert/strict";
import { execSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { accessible, becomes, opened as openedAt } from "./browser.mjs";

const { CONSOLE, CONSOLE_TOKENS, READER, REVOKE, PICTURES } = process.env;
const QUESTION = "Could Henrik have worked on the boat when she was built?";
const HARBOUR = "bank=sample%2Fharbour";
const ASKED = `ask?${HARBOUR}&q=${encodeURIComponent(QUESTION)}`;

const opened = (path, options = {}) => openedAt(path, { base: CONSOLE, ...options });

/** How often the picture was drawn, once nothing is drawn any more. */
async function timesDrawn(page) {
  // On a busy machine the first drawing may come late.
  const canvas = page.locator(".picture canvas[data-drawn]");
  let before;
  let now = await canvas.getAttribute("data-drawn");
  while (now !== before) {
    before = now;
    await page.waitForTimeout(300);
    now = await canvas.getAttribute("data-drawn");
  }
  return Number(now);
}

const answered = (page) => page.waitForSelector(".evidence .row");

test("every screen at both widths, light and dark", async () => {
  const screens = {
    ask: [ASKED, ".evidence .row"],
    begin: [`ask?${HARBOUR}`, ".examples button"],
    trace: [`trace?${HARBOUR}&q=${encodeURIComponent(QUESTION)}&turn=h3-06`, ".rail li"],
    live: [`live?${HARBOUR}`, ".turn-list li"],
    banks: [`banks?${HARBOUR}`, ".opened .turn-list li"],
    profile: [`profile?${HARBOUR}`, ".profile .turn-list li"],
    health: ["health", ".values"],
  };
  for (const width of [1280, 390]) {
    for (const look of ["light", "dark"]) {
      for (const [name, [path, ready]] of Object.entries(screens)) {
        const { page, close } = await opened(path, { width, look });
        await page.waitForSelector(ready);
        if (name === "ask") await page.waitForFunction(() => globalThis.said.at(-1)?.startsWith("Evidence"));
        assert.equal(await page.locator("h1").count(), 1, name);
        const [wide, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
        assert.ok(wide <= screen, `${name} at ${width} is ${wide} wide`);
        await page.screenshot({ path: `${PICTURES}/${name}-${width}-${look}.png` });
        await accessible(page);
        await close();
      }
    }
  }
});

test("a question plays its steps, and each is announced", async () => {
  const { page, close } = await opened(`ask?${HARBOUR}`, { still: false });
  await page.getByLabel("Question").fill(QUESTION);
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => globalThis.said.at(-1)?.startsWith("Evidence"));
  const said = await page.evaluate(() => globalThis.said.map((sentence) => sentence.split(/[: ]/)[0]));
  const steps = ["Question", "First", "Plan", "Evidence"];
  assert.deepEqual(
    said.filter((word) => word !== "Hop"),
    steps,
  );
  assert.equal(await page.locator(".sentence").getAttribute("aria-live"), "polite");
  assert.match(page.url(), /q=Could/);
  await close();
});

test("the whole way by keyboard", async () => {
  const { page, close } = await opened(ASKED);
  await answered(page);
  const last = await page.locator(".transport input").getAttribute("max");
  const step = () => page.locator(".sentence").getAttribute("data-step");
  await page.waitForFunction(() => globalThis.said.at(-1)?.startsWith("Evidence"));
  await page.locator("main").focus();
  await page.keyboard.press("ArrowLeft");
  await becomes(step, String(Number(last) - 1));
  await page.keyboard.press("ArrowRight");
  await becomes(step, last);
  const row = () => page.evaluate(() => document.activeElement?.dataset.unit);
  const unit = (place) => page.locator(".evidence .row").nth(place).getAttribute("data-unit");
  await page.keyboard.press("j");
  await becomes(row, await unit(0));
  await page.keyboard.press("j");
  const second = await unit(1);
  await becomes(row, second);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".drawer .turns li");
  assert.match(page.url(), new RegExp(`unit=${second}`));
  assert.ok((await page.locator(".drawer .edges li").count()) > 0, "the unit has edges");
  assert.match(await page.locator(".drawer").textContent(), /How it was reached/);
  await accessible(page);
  await page.keyboard.press("Escape");
  await page.waitForSelector(".drawer", { state: "detached" });
  await becomes(row, second, "the focus is where it was");
  await page.keyboard.press("/");
  await becomes(() => page.evaluate(() => document.activeElement?.getAttribute("aria-label")), "Question");
  await page.locator("main").focus();
  await page.keyboard.press("?");
  await page.getByLabel("Single letters and signs are keys").uncheck();
  await page.keyboard.press("Escape");
  await page.locator("main").focus();
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "main", "letters are no keys any more");
  await close();
});

test("on a narrow screen a unit is a sheet of its own", async () => {
  const { page, close } = await opened(ASKED, { width: 390 });
  await answered(page);
  await page.locator(".evidence .row").first().click();
  await page.waitForSelector(".drawer .turns li");
  const box = await page.locator(".drawer").boundingBox();
  assert.equal(box.width, 390);
  await page.screenshot({ path: `${PICTURES}/unit-390-light.png` });
  await accessible(page);
  await page.keyboard.press("Escape");
  await page.waitForSelector(".drawer", { state: "detached" });
  await close();
});

test("the context is the agent's, word for word, and the JSON has every number", async () => {
  const { page, close } = await opened(ASKED);
  await answered(page);
  const answer = JSON.parse(await shown(page, "JSON"));
  assert.equal(await shown(page, "Context"), answer.context);
  assert.equal(await page.locator(".evidence .row").count(), 0);
  await accessible(page);
  await close();
});

test("the time that a question names is shown as it was read", async () => {
  const asked = encodeURIComponent("What did Henrik do last month?");
  const { page, close } = await opened(`ask?${HARBOUR}&q=${asked}&at=2026-11-29T09:00:00Z`);
  const reading = page.locator(".reading span", { hasText: "Time “last month”" });
  await reading.waitFor();
  assert.match(await reading.textContent(), /from 1 Oct 2026, 00:00 to 31 Oct 2026/);
  await accessible(page);
  await close();
});

test("flat stands beside recollection, with the numbers of the answer, at both widths", async () => {
  const body = JSON.stringify({ bank: "sample/harbour", text: QUESTION, compare: true });
  const headers = { "content-type": "application/json" };
  const answer = await (await fetch(`${CONSOLE}/v1/ask`, { method: "POST", headers, body })).json();
  const found = answer.units.map((unit) => unit.id);
  assert.ok(found.length > 1, "an answer with something to compare");
  for (const width of [1280, 390]) {
    const { page, close } = await opened(ASKED, { width });
    await answered(page);
    await page.getByRole("tab", { name: "Side by side" }).click();
    for (const [name, ranking] of [
      ["meaning", answer.flat.meaning],
      ["words", answer.flat.words],
      ["same score", answer.flat.same_score],
    ]) {
      await page.getByRole("radio", { name, exact: true }).check();
      const flat = ranking.units.map((unit) => unit.id);
      const both = flat.filter((id) => found.includes(id)).length;
      const numbers = [flat.length, ranking.tokens, found.length, answer.tokens.spent, both];
      const counts = page.locator(".counts");
      await counts.waitFor();
      const read = async () => (await counts.textContent()).replaceAll(",", "").match(/\d+/g).map(Number).join();
      await becomes(read, numbers.join(), `${name} at ${width}`);
      const listed = (list) =>
        list.locator(".row").evaluateAll((rows) => rows.map((row) => row.getAttribute("data-unit")));
      if (width > 500) {
        assert.deepEqual(await listed(page.getByRole("list", { name: "Flat", exact: true })), flat);
        assert.deepEqual(await listed(page.getByRole("list", { name: "Recollection", exact: true })), found);
      } else {
        const list = page.getByRole("list", { name: "Flat and recollection" });
        assert.deepEqual((await listed(list)).sort(), [...new Set([...flat, ...found])].sort());
        const badges = await list.locator(".badge").allTextContents();
        assert.equal(badges.filter((text) => text.startsWith("F")).length, flat.length);
        assert.equal(badges.filter((text) => text.startsWith("R")).length, found.length);
      }
    }
    const [wide, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= screen, `at ${width} it is ${wide} wide`);
    await page.screenshot({ path: `${PICTURES}/side-by-side-${width}-light.png` });
    await accessible(page);
    await close();
  }
});

test("Health says how long questions take", async () => {
  const { page, close } = await opened(ASKED);
  await answered(page);
  await page.goto(`${CONSOLE}/console/#/health`);
  await page.getByRole("img", { name: /^99 of 100 questions take at most: now [\d.,]+ ms$/ }).waitFor();
  for (const name of ["Turns behind", "Turns a second", "Questions a second"]) {
    await page.getByRole("img", { name: new RegExp(`^${name}: now [\\d.,]+$`) }).waitFor();
  }
  // The value under the pointer, with its moment, in the words above the line.
  const line = page.locator("figure.line", { hasText: "Turns behind" });
  await line.locator("canvas").waitFor();
  await becomes(async () => (await line.locator("small").textContent()).startsWith("most"), true);
  await line.locator(".u-over").hover();
  await becomes(async () => /^\d\d:\d\d:\d\d: [\d.,]+$/.test(await line.locator("small").textContent()), true);
  await page.screenshot({ path: `${PICTURES}/health-lines.png` });
  await close();
});

async function shown(page, tab) {
  await page.getByRole("tab", { name: tab }).click();
  return page.locator("#found pre").textContent();
}

test("nothing is drawn while nobody asks, and panning draws nothing again", async () => {
  const many = 2000;
  const { page, close } = await opened(ASKED, {
    prepare: (page) =>
      page.route("**/v1/ask", async (route) => {
        const answer = await (await route.fetch()).json();
        const [round] = answer.trace.rounds.filter((round) => round.plan.proceed);
        const anchor = answer.units[0].id;
        const plan = { proceed: true, sufficiency: 0.5, reason: "thin", anchors: [anchor] };
        const units = Array.from({ length: many }, (_, i) => ({
          id: `u${i}`,
          label: `Unit ${i}`,
          said_at: answer.units[i % answer.units.length].said_at,
          share: (i % 97) / 140,
          state: "reached",
        }));
        const edges = Array.from({ length: 3 * many }, (_, i) => ({
          from: `u${i % many}`,
          to: `u${(i * 7 + 1) % many}`,
          channel: i % 2 ? "semantic" : "structural",
          weight: 0.5,
        }));
        answer.trace.rounds = [
          { support: [], reflects: [], ...round, plan, reached: many, walk: { units, edges, truncated: 0 } },
        ];
        await route.fulfill({ json: answer });
      }),
  });
  await answered(page);
  await page.waitForFunction(() => globalThis.said.at(-1)?.startsWith("Evidence"));
  // Beside them are the few units on the way of the answer's own paths.
  assert.match(await page.locator(".legend").textContent(), /2,00\d only reached/);
  const canvas = page.locator(".picture canvas");
  const before = await timesDrawn(page);
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + box.width - 20, box.y + 20);
  await page.mouse.down();
  for (let i = 0; i < 60; i++) await page.mouse.move(box.x + box.width - 20 - i * 4, box.y + 20 + i * 4);
  await page.mouse.up();
  assert.equal(await timesDrawn(page), before, "panned without drawing");
  await page.getByLabel("Zoom in").click();
  await page.waitForFunction(
    (before) => Number(document.querySelector(".picture canvas").dataset.drawn) > before,
    before,
  );
  assert.equal(await timesDrawn(page), before + 1, "drawn once for another size");
  await close();
});

test("without a wish for motion a step is drawn once", async () => {
  const { page, close } = await opened(ASKED, { still: true });
  await answered(page);
  await page.waitForFunction(() => globalThis.said.at(-1)?.startsWith("Evidence"));
  const before = await timesDrawn(page);
  await page.locator("main").focus();
  for (const [i, key] of ["ArrowLeft", "ArrowRight"].entries()) {
    await page.keyboard.press(key);
    // The page draws after the key, in its own time; a second key before that would leave it nothing to draw.
    await page.waitForFunction(
      (least) => Number(document.querySelector(".picture canvas").dataset.drawn) >= least,
      before + i + 1,
    );
    assert.equal(await timesDrawn(page), before + i + 1, key);
  }
  await close();
});

test("what was said can be hidden, and a wrong bank is said", async () => {
  const { page, close } = await opened(ASKED);
  await answered(page);
  await page.getByRole("button", { name: "Help and settings" }).click();
  await page.getByLabel("Blur what was said").check();
  await page.keyboard.press("Escape");
  const filter = await page
    .locator(".evidence .said")
    .first()
    .evaluate((element) => getComputedStyle(element).filter);
  assert.match(filter, /blur/);
  await close();

  const wrong = await opened(`ask?bank=no%2Fsuch&q=Where`, { expects: ["404"] });
  const notice = wrong.page.locator(".answer [role=status]");
  await notice.waitFor();
  assert.match(await notice.textContent(), /no\/such.*check its name/);
  await wrong.close();
});

test("a turn is put, seen, and changes a question that is followed", async () => {
  const { page, close } = await opened(`live?${HARBOUR}`);
  await page.waitForSelector(".turn-list li");
  await page.getByLabel("Question to follow").fill("Where did the walrus figurehead go?");
  await page.getByRole("button", { name: "Follow" }).click();
  await page.locator(".live .verdict strong").waitFor();
  await page.getByText("Put a turn into sample/harbour").click();
  const put = page.locator(".put");
  await put.getByLabel("Speaker").fill("Priya");
  await put.getByLabel("Says").fill("The walrus figurehead went to the museum in Schleswig.");
  await put.getByRole("button", { name: "Put" }).click();
  const row = page.locator(".turn-list li.fresh", { hasText: "walrus figurehead" });
  await row.waitFor();
  await row.filter({ hasText: /unit [0-9a-f]{16}/ }).waitFor();
  await page.locator(".followed li", { hasText: "museum in Schleswig" }).waitFor();
  await page.getByLabel("Speaker").first().selectOption("Priya");
  assert.ok(!(await page.locator(".turn-list b").allTextContents()).some((name) => name !== "Priya"));
  // What is put during a pause is told afterwards.
  await page.getByRole("button", { name: "Pause" }).click();
  await put.getByLabel("Says").fill("The walrus is back, and is painted green.");
  await put.getByRole("button", { name: "Put" }).click();
  await put.getByText("answers reflect it").waitFor();
  assert.equal(await page.locator(".turn-list li", { hasText: "painted green" }).count(), 0);
  await page.getByRole("button", { name: "Go on" }).click();
  await page.locator(".turn-list li.fresh", { hasText: "painted green" }).waitFor();
  await close();
});

test("a stream that ends is said, and what came stays", async () => {
  const progress = { bank: "sample/harbour", units: 3, semantic_edges: 2, structural_edges: 1, reflects: [] };
  const turn = {
    turn: "t1",
    speaker: "Ida",
    time: "2024-03-02T09:00:00+01:00",
    session: "s",
    text: "The tide tables came.",
  };
  const events = `event: progress\nid: 0:1\ndata: ${JSON.stringify(progress)}\n\nevent: turn\ndata: ${JSON.stringify(turn)}\n\n`;
  const { page, close } = await opened(`live?${HARBOUR}`, {
    prepare: (page) =>
      page.route("**/v1/events?**", (route) => route.fulfill({ contentType: "text/event-stream", body: events })),
  });
  await page.getByText("not connected").waitFor();
  await page.locator(".turn-list li.fresh", { hasText: "tide tables" }).waitFor();
  await close();
});

test("the map of a bank is drawn once, and not again while it is panned", async () => {
  const many = 2000;
  const id = (i) => i.toString(16).padStart(16, "0");
  const asked = [];
  const { page, close } = await opened(`banks?${HARBOUR}`, {
    prepare: (page) =>
      page.route("**/v1/graph?**", async (route) => {
        asked.push(new URL(route.request().url()).searchParams.get("around"));
        const units = Array.from({ length: many }, (_, i) => ({
          id: id(i),
          label: `Unit ${i}`,
          said_at: new Date(Date.UTC(2024, 0, 1) + i * 3_600_000).toISOString(),
          session: `caller:s${i % 40}`,
        }));
        const edges = Array.from({ length: 3 * many }, (_, i) => ({
          from: id(i % many),
          to: id((i * 7 + 1) % many),
          channel: i % 2 ? "semantic" : "structural",
          weight: 0.5,
        }));
        const json = { bank: "sample/harbour", units, edges, total_units: 51_887, total_edges: 420_000 };
        await route.fulfill({ json: { ...json, truncated: true, reflects: [] } });
      }),
  });
  await page.getByRole("button", { name: "Map" }).click();
  await page.getByText("2,000 of 51,887 units").waitFor();
  await page.getByText("6,000 of 420,000 edges").waitFor();
  const before = await timesDrawn(page);
  assert.equal(before, 1);
  const box = await page.locator(".picture canvas").boundingBox();
  await page.getByLabel("Zoom in").click();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down();
  for (let i = 0; i < 60; i++) await page.mouse.move(box.x + box.width / 2 - i * 4, box.y + box.height / 2 + i * 2);
  await page.mouse.up();
  assert.equal(await timesDrawn(page), before, "panned and zoomed without drawing");
  const first = page.locator(".map-list button").first();
  await first.focus();
  assert.equal(await timesDrawn(page), before, "pointed at without drawing");
  await accessible(page);
  await page.screenshot({ path: `${PICTURES}/map-1280-light.png` });
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "What was said last" }).waitFor();
  assert.deepEqual(asked, [null, id(0)]);
  await close();
});

test("the map of the sample has all of its units, also on a narrow screen", async () => {
  const { page, close } = await opened(`banks?${HARBOUR}`, { width: 390, look: "dark" });
  await page.getByRole("button", { name: "Map" }).click();
  const said = await page.locator(".map .verdict span").first().textContent();
  const [shown, all] = said.match(/\d+/g);
  assert.ok(Number(shown) > 20 && shown === all, said);
  await page.locator(".map-list button").first().click();
  await page.getByRole("button", { name: "What was said last" }).waitFor();
  await accessible(page);
  await page.screenshot({ path: `${PICTURES}/map-390-dark.png` });
  await close();
});

test("a line of a profile leads to its turn, and goes with it while it is looked at", async () => {
  const { page, close } = await opened(`live?${HARBOUR}`);
  await page.getByText("Put a turn into sample/harbour").click();
  const put = page.locator(".put");
  await put.getByLabel("Speaker").fill("Priya");
  await put.getByLabel("Says").fill("I live in Bergen.");
  await put.getByRole("button", { name: "Put" }).click();
  await page.locator(".turn-list li", { hasText: "I live in Bergen." }).waitFor();
  await page.goto(`${CONSOLE}/console/#/profile?${HARBOUR}`);
  const line = page.locator(".profile section[aria-label=Facts] li", { hasText: "I live in Bergen." });
  await line.getByRole("button", { name: "Its turn" }).click();
  await accessible(page);
  await line.getByRole("button", { name: "Forget …" }).click();
  await line.getByRole("button", { name: "Forget", exact: true }).click();
  await line.waitFor({ state: "detached" });
  await close();
});

test("a bank shows its turns, and one that is forgotten is gone", async () => {
  const { page, close } = await opened(`live?${HARBOUR}`);
  await page.getByText("Put a turn into sample/harbour").click();
  const put = page.locator(".put");
  await put.getByLabel("Speaker").fill("Priya");
  await put.getByLabel("Says").fill("Nobody needs to know about the second anchor.");
  await put.getByRole("button", { name: "Put" }).click();
  await page.locator(".turn-list li", { hasText: "second anchor" }).waitFor();
  await page.goto(`${CONSOLE}/console/#/banks?${HARBOUR}`);
  const row = page.locator(".opened .turn-list li", { hasText: "second anchor" });
  await row.getByRole("button", { name: "Forget …" }).click();
  await row.getByRole("button", { name: "Keep" }).click();
  await row.getByRole("button", { name: "Forget …" }).click();
  await row.getByRole("button", { name: "Forget", exact: true }).click();
  await page.getByText("is forgotten, with everything").waitFor();
  await page.reload();
  await page.waitForSelector(".opened .turn-list li");
  assert.equal(await page.locator(".turn-list li", { hasText: "second anchor" }).count(), 0);
  await close();
});

test("tokens: a wrong one is refused, a right one stays in memory, a revoked one ends", async () => {
  const { page, close } = await opened("health", { base: CONSOLE_TOKENS, expects: ["401", "403"] });
  const field = page.getByLabel("Token with the right");
  await field.fill("rm_wrong");
  await page.keyboard.press("Enter");
  await page.getByText("not valid, or was revoked").waitFor();
  await accessible(page);
  await field.fill(READER);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".values");
  const left = await page.evaluate(() => ({
    address: location.href,
    stored: JSON.stringify([{ ...localStorage }, { ...sessionStorage }]),
    cookies: document.cookie,
    shown: document.documentElement.outerHTML,
    fields: [...document.querySelectorAll("input")].map((input) => input.value).join(),
  }));
  for (const [where, text] of Object.entries(left)) assert.ok(!text.includes(READER), `the token is in the ${where}`);
  assert.equal(left.stored, "[{},{}]");
  // Loaded again, the page has forgotten it.
  await page.reload();
  await field.waitFor();
  await field.fill(READER);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".values");
  execSync(REVOKE, { stdio: "ignore" });
  await page.getByText("not valid, or was revoked").waitFor();
  await close();
});

test("as of: the moments that answer are stops, and each answers as it was", async () => {
  const { page, close } = await opened(ASKED);
  await answered(page);
  const slider = page.locator(".as-of input");
  await slider.waitFor();
  assert.ok(Number(await slider.getAttribute("max")) >= 4, "the sample was put in four reads");
  const rows = page.locator(".evidence .row");
  const now = await rows.first().getAttribute("data-unit");
  await slider.focus();
  await page.keyboard.press("Home");
  await page.waitForURL(/asof=/);
  await page.locator(".verdict", { hasText: "as of " }).locator("text=/as of \\d+/").waitFor();
  await page.getByText("Beside the moment before").waitFor();
  const offset = new URLSearchParams(page.url().split("?")[1]).get("asof");
  const then = JSON.parse(await shown(page, "JSON"));
  const memory = then.reflects.find((at) => at.topic === "memory");
  assert.equal(memory.next_offset, Number(offset) + 1);
  await page.getByRole("tab", { name: "Evidence" }).click();
  await page.locator("main").focus();
  // A key goes on from the point that is answered.
  for (let at = 1; at <= Number(await slider.getAttribute("max")); at++) {
    await page.keyboard.press("]");
    await becomes(() => slider.inputValue(), String(at));
  }
  await page.locator(".verdict", { hasText: "as of now" }).waitFor();
  assert.equal(await rows.first().getAttribute("data-unit"), now);
  await accessible(page);
  await close();
});

test("near misses say what they lacked, and lead to why", async () => {
  const { page, close } = await opened(ASKED);
  await answered(page);
  await page.locator(".missed summary").click();
  assert.match(await page.locator(".missed li .facts").first().textContent(), /share -?\d\.\d\d|familiarity/);
  await page.locator(".missed li .link").first().click();
  await page.waitForSelector(".rail li");
  assert.match(page.url(), /#\/trace\?.*q=Could/);
  await close();
});

test("trace: a turn that is found by its words, twelve steps, and the first that failed", async () => {
  const { page, close } = await opened(`trace?${HARBOUR}`);
  await page.getByLabel("Question").fill(QUESTION);
  await page.getByLabel("Turn: its id, or words of it").fill("adopted a shipwreck");
  await page.locator(".turn-field [role=option]").first().click();
  await page.waitForSelector(".rail li");
  const steps = await page.locator(".rail summary b").allTextContents();
  const all = [
    "Stored",
    "Reflected",
    "Window",
    "Unit",
    "Vectors",
    "Edges",
    "Candidate",
    "Score",
    "Cutoff",
    "Walk",
    "Assembly",
    "Context",
  ];
  assert.deepEqual(steps, all);
  assert.ok((await page.locator(".outcome-sentence").textContent()).length > 20);
  await accessible(page);
  await close();
});

test("trace: words are enough, by the button, by Enter and by the arrows, and what is missing is said", async () => {
  const { page, close } = await opened(`trace?${HARBOUR}`);
  const [question, turn] = [page.getByLabel("Question"), page.getByLabel("Turn: its id, or words of it")];
  const explain = page.getByRole("button", { name: "Explain" });
  const explained = async (words) => {
    await page.locator("blockquote", { hasText: words }).waitFor();
    await page.locator(".rail li").first().waitFor();
  };
  await explain.click();
  await page.getByRole("alert").filter({ hasText: "Write the question" }).waitFor();
  await question.fill(QUESTION);
  await turn.fill("no such words");
  await explain.click();
  await page.getByRole("alert").filter({ hasText: "Choose a turn" }).waitFor();
  // The list of turns may come later than the words.
  await turn.fill("adopted a shipwreck");
  await explain.click();
  await explained("adopted a shipwreck");
  assert.equal(await page.getByRole("alert").count(), 0);
  const first = new URL(page.url()).hash.match(/turn=([^&]+)/)[1];
  assert.equal(await turn.inputValue(), decodeURIComponent(first));
  // By arrows: the second of those that fit.
  await turn.fill("boat");
  await page.locator(".turn-field [role=option]").nth(1).waitFor();
  const second = await page.locator(".turn-field [role=option] small").nth(1).textContent();
  await turn.press("ArrowDown");
  await turn.press("ArrowDown");
  await becomes(() => page.locator(".turn-field [aria-selected=true]").count(), 1);
  assert.equal(await turn.getAttribute("aria-activedescendant"), "turns-that-fit-1");
  await accessible(page);
  await turn.press("Enter");
  await becomes(async () => second.endsWith(` ${await turn.inputValue()}`), true);
  await becomes(() => page.evaluate(() => location.hash.includes("turn=")), true);
  await page.locator(".rail li").first().waitFor();
  // By Enter, with words alone.
  await turn.fill("adopted a shipwreck");
  await turn.press("Enter");
  await explained("adopted a shipwreck");
  await close();
});

test("at 400 pixels nothing of the evidence is cut off, and every number of a bank is there with its name", async () => {
  const asked = await opened(ASKED, { width: 400 });
  await answered(asked.page);
  const cut = () =>
    asked.page
      .locator(".said > span")
      .evaluateAll((texts) => texts.filter((text) => text.scrollHeight > text.clientHeight + 1).length);
  await becomes(cut, 0);
  assert.match(await asked.page.locator(".meanings summary").textContent(), /What the numbers mean/);
  await asked.page.locator(".meanings summary").click();
  for (const word of ["sufficiency", "share", "ρ"]) {
    await asked.page.locator(".meanings dt", { hasText: word }).first().waitFor();
  }
  await asked.page.screenshot({ path: `${PICTURES}/evidence-400.png` });
  await asked.close();
  const { page, close } = await opened(`banks?${HARBOUR}`, { width: 400 });
  await page.waitForSelector(".bank-table tbody tr");
  const outside = await page
    .locator(".bank-table td")
    .evaluateAll((cells) => cells.filter((cell) => cell.getBoundingClientRect().right > innerWidth).length);
  assert.equal(outside, 0);
  await page.screenshot({ path: `${PICTURES}/banks-400.png` });
  await close();
});

test("Health has the units that are held beside those that were written since it began", async () => {
  const { page, close } = await opened("health");
  const held = page.locator(".values div", { hasText: "Units held" }).locator("dd");
  await becomes(async () => Number((await held.textContent()).replaceAll(",", "")) > 0, true);
  await page.getByRole("heading", { name: "Since the service began" }).waitFor();
  await close();
});

test("trace: of a unit, each of its passages", async () => {
  const asked = { method: "POST", body: JSON.stringify({ bank: "sample/harbour", text: QUESTION }) };
  const { units } = await (await fetch(`${CONSOLE}/v1/ask`, asked)).json();
  const { page, close } = await opened(`trace?${HARBOUR}&q=${encodeURIComponent(QUESTION)}&unit=${units[0].id}`);
  const passage = page.getByRole("button", { name: /^part \d+$/ }).first();
  const name = await passage.textContent();
  await passage.click();
  await page.getByText(`Of unit ${units[0].id}, ${name}`).waitFor();
  await page.waitForSelector(".rail li");
  assert.match(page.url(), new RegExp(`unit=${units[0].id}&part=${name.split(" ")[1]}`));
  await page.getByRole("button", { name: "All of it" }).click();
  await passage.waitFor();
  assert.doesNotMatch(page.url(), /part=/);
  await close();
});

test("trace agrees with the answer: what is quoted is explained as quoted, a near miss as not", async () => {
  const { page, close } = await opened(ASKED);
  await answered(page);
  const answer = JSON.parse(await shown(page, "JSON"));
  const quoted = answer.units[0].excerpts[0].turn;
  const missed = answer.trace.near[0].turn;
  for (const [turn, kind] of [
    [quoted, "good"],
    [missed, "bad"],
  ]) {
    await page.goto(`${CONSOLE}/console/#/trace?${HARBOUR}&q=${encodeURIComponent(QUESTION)}&turn=${turn}`);
    await page.waitForSelector(`.outcome.${kind}`);
    const opened = await page.locator(".rail details[open] summary b").allTextContents();
    assert.equal(opened.length, 1, "the step that decided is open");
    if (kind === "good") assert.equal(await page.locator(".rail mark").count(), 1, "its line is marked in the context");
    else assert.equal(await page.locator(".rail .decided").count(), 1);
  }
  await close();
});

test("the picture of the README", async () => {
  for (const look of ["light", "dark"]) {
    const { page, close } = await opened(ASKED, { look });
    await answered(page);
    await page.waitForFunction(() => globalThis.said.at(-1)?.startsWith("Evidence"));
    const picture = await page.locator(".picture").screenshot();
    assert.ok(picture.length < 150_000, `${picture.length} bytes`);
    await writeFile(`${PICTURES}/ripple-${look}.png`, picture);
    await close();
  }
});

test("what changed between two points of a bank", async () => {
  const { points } = await (await fetch(`${CONSOLE}/v1/history?bank=sample%2Fharbour`)).json();
  const [first] = points;
  for (const width of [1280, 390]) {
    const { page, close } = await opened(`${ASKED}&asof=${first.offset}`, { width });
    await answered(page);
    await page.getByRole("link", { name: "What changed since" }).click();
    await page.waitForSelector(".changes .turn-list li");
    const counts = () => page.locator(".changes .verdict").textContent();
    const sinceFirst = await counts();
    assert.match(sinceFirst, /units \+[1-9]\d* −\d+.*edges \+[1-9]\d* −\d+/);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `at ${width}`);
    await page.screenshot({ path: `${PICTURES}/changes-${width}.png` });
    await accessible(page);
    await page.getByLabel("To").selectOption(points[1].offset);
    await page.waitForFunction((before) => {
      const now = document.querySelector(".changes .verdict")?.textContent;
      return now && now !== before;
    }, sinceFirst);
    assert.match(page.url(), new RegExp(`from=${first.offset}&to=${points[1].offset}`));
    await page.getByRole("button", { name: "Changes" }).click();
    assert.equal(await page.locator(".changes").count(), 0);
    assert.doesNotMatch(page.url(), /from=/);
    await close();
  }
});

test("a rejected record of the bank is shown with its reason and without its words", async () => {
  const { page, close } = await opened(`live?${HARBOUR}`);
  await page.waitForSelector(".turn-list li");
  const payload = JSON.stringify({ bank: "sample/harbour", turn: "odd-1", text: "the vermilion submarine" });
  const letter = {
    schema: 1,
    origin: "records.jsonl:3",
    reason: "time: missing; add it",
    payload,
    bank: "sample/harbour",
  };
  const put = { method: "POST", body: JSON.stringify({ turns: [], dead_letters: [letter] }) };
  assert.equal((await fetch(`${CONSOLE}/v1/turns`, put)).status, 200);
  const row = page.locator(".turn-list li.rejected");
  await row.waitFor();
  assert.match(await row.textContent(), /Rejected time: missing; add it.*turn odd-1/);
  assert.doesNotMatch(await page.locator("main").textContent(), /vermilion/);
  await close();
});
