// What the page has to know of schemas/openapi.v1.json when it is built.
import { readFile } from "node:fs/promises";

const { paths, components } = JSON.parse(
  await readFile(new URL("../../../schemas/openapi.v1.json", import.meta.url), "utf8"),
);

/** The constants of offered.ts. */
export const offered = {
  PATHS: JSON.stringify(Object.keys(paths)),
  ASK_FIELDS: JSON.stringify(Object.keys(components.schemas.Ask.properties)),
  BANKS_PARAMETERS: JSON.stringify((paths["/v1/banks"].get.parameters ?? []).map(({ name }) => name)),
};

export const hasPath = (path) => path in paths;
