// Fails where the whole client, bundled and minified, is larger in gzip than a page should have to load; says how large the
// subpaths are with it, without what their frameworks bring.
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const MOST_BYTES = 5_000;

async function size(entry) {
  const { outputFiles } = await build({
    absWorkingDir: fileURLToPath(new URL(".", import.meta.url)),
    entryPoints: [`src/${entry}.ts`],
    external: ["@langchain/*", "@openai/*", "ai"],
    bundle: true,
    minify: true,
    format: "esm",
    write: false,
  });
  return gzipSync(outputFiles[0].contents, { level: 9 }).length;
}

const bytes = await size("index");
console.log(`the client has ${bytes} bytes, bundled, minified and in gzip; at most ${MOST_BYTES}`);
const subpaths = ["tools", "adapters/ai", "adapters/langgraph", "adapters/openai_agents", "adapters/claude_agent_sdk"];
const sizes = await Promise.all(subpaths.map(async (entry) => `${entry} ${await size(entry)}`));
console.log(`its subpaths, of which a program loads the client once: ${sizes.join(", ")}`);
if (bytes > MOST_BYTES) process.exit(1);
