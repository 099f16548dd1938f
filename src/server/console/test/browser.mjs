// The browser of the page's tests: a page is opened, and what goes wrong on it fails its test.
//
// In: CHROMIUM, the browser; PICTURES, a folder that is made. No request may leave the origin; no error may be logged.
import assert from "node:assert/strict";
import { execSync } from "node:child_process";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, before } from "node:test";
import { chromium } from "playwright-core";

const { CHROMIUM, PICTURES } = process.env;
const PATIENCE_MILLISECONDS = 180_000;
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let browser;
before(async () => {
  await mkdir(PICTURES, { recursive: true });
  // Without a sandbox of its own, which root has not; it opens this service's pages alone.
  const executablePath = execSync(`command -v ${CHROMIUM}`, { encoding: "utf8" }).trim();
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
});
after(() => browser?.close());

/** A page, and what went wrong on it; `folder` is where the service has it. */
export async function opened(
  path,
  { base, folder = "console", width = 1280, look = "light", still = true, expects = [], prepare } = {},
) {
  const context = await browser.newContext({
    viewport: { width, height: width < 500 ? 844 : 860 },
    colorScheme: look,
    reducedMotion: still ? "reduce" : "no-preference",
  });
  // A wait ends with what it waits for; its limit is for a machine that has much else to do.
  context.setDefaultTimeout(PATIENCE_MILLISECONDS);
  const page = await context.newPage();
  const wrong = [];
  page.on("console", (message) => {
    if (message.type() === "error" && !expects.some((text) => message.text().includes(text)))
      wrong.push(message.text());
  });
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol !== "data:" && url.origin !== new URL(base).origin) wrong.push(`a request to ${url.origin}`);
  });
  await page.addInitScript(() => {
    globalThis.refused = [];
    document.addEventListener("securitypolicyviolation", (event) => globalThis.refused.push(event.blockedURI));
    globalThis.said = [];
    new MutationObserver(() => {
      const sentence = document.querySelector(".sentence")?.textContent;
      if (sentence && globalThis.said.at(-1) !== sentence) globalThis.said.push(sentence);
    }).observe(document, { subtree: true, childList: true, characterData: true });
  });
  await prepare?.(page);
  await page.goto(`${base}/${folder}/#/${path}`);
  const close = async () => {
    assert.deepEqual(await page.evaluate(() => globalThis.refused), [], "the policy refused something");
    assert.deepEqual(wrong, []);
    await context.close();
  };
  return { page, close };
}

/** No finding that shuts somebody out. */
export async function accessible(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  const found = serious.map(
    ({ id, nodes }) =>
      `${id}: ${nodes
        .map((node) => node.html)
        .join(" ")
        .slice(0, 300)}`,
  );
  assert.deepEqual(found, []);
}

/** Waits until something is as expected: the page answers a key in its own time. */
export async function becomes(read, expected, message) {
  const late = Date.now() + PATIENCE_MILLISECONDS;
  while ((await read()) !== expected && Date.now() < late) await new Promise((resume) => setTimeout(resume, 20));
  assert.equal(await read(), expected, message);
}
