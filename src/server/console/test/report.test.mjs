// The page of a report in a browser, against `ripplemem console --report`.
//
// In: REPORT, its address, with the report of an evaluation that missed some evidence; CHROMIUM, the browser; PICTURES, a
// folder for what the page looks like.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible, becomes, opened as openedAt } from "./browser.mjs";

const { REPORT, PICTURES } = process.env;
const opened = (path, options = {}) => openedAt(path, { base: REPORT, folder: "report", ...options });
const report = await (await fetch(`${REPORT}/report/report.json`)).json();
const misses = report.questions.filter((line) => line.supported !== false && line.found < line.evidence);
const missed = misses[0];
const fileOf = async (line) => (await fetch(`${REPORT}/report/questions/${line.file}`)).json();
const rows = (page) => page.locator(".asked tbody tr");
const filters = (page) => page.locator(".filters");
const ready = (page) => page.waitForSelector(".asked tbody tr");

test("the figures and a question at both widths, light and dark", async () => {
  const screens = {
    report: ["report", ".asked tbody tr"],
    missed: [`report?question=${missed.file}`, ".expected .row"],
  };
  for (const width of [1280, 390]) {
    for (const look of ["light", "dark"]) {
      for (const [name, [path, shown]] of Object.entries(screens)) {
        const asked = [];
        const prepare = (page) => page.on("request", (request) => asked.push(new URL(request.url()).pathname));
        const { page, close } = await opened(path, { width, look, prepare });
        await page.waitForSelector(shown);
        assert.equal(await page.locator("h1").count(), 1, name);
        const [wide, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
        assert.ok(wide <= screen, `${name} at ${width} is ${wide} wide`);
        await page.screenshot({ path: `${PICTURES}/${name}-${width}-${look}.png` });
        await accessible(page);
        const elsewhere = asked.filter((path) => !path.startsWith("/report/"));
        assert.ok(asked.includes("/report/report.json"));
        assert.deepEqual(elsewhere, [], "a report has no service");
        await close();
      }
    }
  }
});

test("the tables have every category, every retriever and every question once, and filters leave what they say", async () => {
  const { page, close } = await opened("report");
  await ready(page);
  await becomes(() => page.locator(".categories tbody tr").count(), report.categories.length + 1);
  // The picture is drawn once the page knows its width.
  await becomes(() => page.locator(".plot .mark").count(), report.retrievers.length, "a mark each in the picture");
  const overall = report.overall.recollection.recall.mean;
  assert.match(await page.locator(".categories .sum").textContent(), new RegExp((100 * overall).toFixed(1)));
  const ids = async () =>
    (await rows(page).locator("small:first-of-type").allTextContents()).map((text) => text.split(" · ")[0]);
  const all = new Set((await ids()).filter((id) => id.includes("#")));
  assert.deepEqual(all, new Set(report.questions.map((line) => line.id)));
  assert.equal(await rows(page).count(), report.questions.length);
  await filters(page).getByLabel("Show").selectOption("missed");
  await becomes(() => rows(page).count(), misses.length);
  assert.match(page.url(), /show=missed/);
  assert.equal(await rows(page).filter({ hasText: "✗" }).count(), misses.length);
  await filters(page).getByLabel("Category").selectOption(missed.category);
  const both = misses.filter((line) => line.category === missed.category).length;
  await becomes(() => rows(page).count(), both);
  await filters(page).getByLabel("Lost at").selectOption(missed.lost_at[0]);
  const lost = misses.filter((l) => l.category === missed.category && l.lost_at.includes(missed.lost_at[0])).length;
  await becomes(() => rows(page).count(), lost);
  // Such an address can be passed on.
  await page.reload();
  await ready(page);
  await becomes(() => rows(page).count(), lost);
  await close();
});

test("by keyboard: a missed question opens, its evidence is found or lost at a step, and a unit opens", async () => {
  const question = await fileOf(missed);
  const { page, close } = await opened("report?show=missed");
  await ready(page);
  await rows(page).first().locator("button").focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector(".expected .row");
  await becomes(() => page.evaluate(() => document.activeElement?.tagName), "H1", "the focus is on the question");
  assert.equal(await page.locator("h1").textContent(), question.answer.question.text);
  const turns = await page.locator(".expected .row").allTextContents();
  assert.equal(turns.length, question.evidence.length);
  question.evidence.forEach(({ turn, found, lost }, at) => {
    assert.ok(turns[at].includes(`turn ${turn}`), turns[at]);
    assert.equal(turns[at].startsWith("✓"), found, turns[at]);
    if (!found) assert.ok(turns[at].includes(lost.sentence), turns[at]);
  });
  assert.match(await page.locator(".legend").textContent(), /expected, and lost/);
  await page.keyboard.press("ArrowLeft");
  const last = Number(await page.locator(".transport input").getAttribute("max"));
  await becomes(() => page.locator(".sentence").getAttribute("data-step"), String(last - 1));
  await page.getByRole("tab", { name: "Evidence" }).click();
  await page.locator("h1").focus();
  await page.keyboard.press("j");
  const first = await page.locator(".evidence .row").first().getAttribute("data-unit");
  await becomes(() => page.evaluate(() => document.activeElement?.dataset.unit), first);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".drawer .turns li");
  assert.match(await page.locator(".drawer").textContent(), /How it was reached/);
  await accessible(page);
  await page.keyboard.press("Escape");
  await page.waitForSelector(".drawer", { state: "detached" });
  await page.getByRole("button", { name: "All questions" }).click();
  await ready(page);
  await becomes(() => rows(page).count(), misses.length, "the filter is as it was");
  await close();
});

test("a question that the report does not have is said", async () => {
  const { page, close } = await opened("report?question=no.json", { expects: ["404"] });
  await page.locator(".problem").waitFor();
  await page.getByRole("button", { name: "All questions" }).click();
  await ready(page);
  await close();
});
