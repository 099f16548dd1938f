// Runs the snippets of docs/typescript.md, and that of the package's README, with the package that npm would install.
//
//     typescript_page.mjs URL TARBALL
//
// In: the address of a service, in place of that of the pages, and the package. Exits with 1 where a snippet has a wrong
// type or fails.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const client = createRequire(join(root, "clients/typescript/package.json"));
const [url, tarball] = process.argv.slice(2);

const home = mkdtempSync(join(tmpdir(), "ripplemem-page-"));
try {
  const node = { cwd: home, stdio: "inherit" };
  writeFileSync(join(home, "package.json"), '{ "private": true, "type": "module" }');
  execFileSync("npm", ["install", "--offline", "--no-audit", "--no-fund", "--silent", tarball], node);
  for (const page of ["docs/typescript.md", "clients/typescript/README.md"]) {
    const snippets = [...readFileSync(join(root, page), "utf8").matchAll(/```typescript\n(.*?)```/gs)].map(([, code]) => code);
    if (!snippets.length) throw new Error(`${page} has no snippet`);
    const code = snippets.join("\n").replaceAll("http://127.0.0.1:8321", url);
    writeFileSync(join(home, "page.ts"), code);
    const options = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--target", "es2022", "--module", "nodenext"];
    const tsc = client.resolve("typescript/bin/tsc");
    execFileSync("node", [tsc, ...options, "--lib", "es2023,dom,dom.iterable", "page.ts"], node);
    const { transformSync } = client("esbuild");
    writeFileSync(join(home, "page.js"), transformSync(code, { loader: "ts" }).code);
    execFileSync("node", ["page.js"], node);
  }
} finally {
  rmSync(home, { recursive: true, force: true });
}
