// Fails where the whole client, bundled and minified, is larger in gzip than a page should have to load.
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const MOST_BYTES = 5_000;

const { outputFiles } = await build({
  absWorkingDir: fileURLToPath(new URL(".", import.meta.url)),
  entryPoints: ["src/index.ts"],
  bundle: true,
  minify: true,
  format: "esm",
  write: false,
});
const bytes = gzipSync(outputFiles[0].contents, { level: 9 }).length;
console.log(`the client has ${bytes} bytes, bundled, minified and in gzip; at most ${MOST_BYTES}`);
if (bytes > MOST_BYTES) process.exit(1);
