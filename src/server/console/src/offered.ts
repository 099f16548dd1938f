// What the service of this page offers. The page is built for one document, that of its program: a screen whose route
// is not in it is left out. The page of a report has no service.
import { IS_REPORT } from "./mode";

declare const PATHS: string[];
declare const ASK_FIELDS: string[];
declare const BANKS_PARAMETERS: string[];

const has = (path: string): boolean => !IS_REPORT && PATHS.includes(path);

export const OFFERED = {
  near: ASK_FIELDS.includes("near"),
  token: has("/v1/token"),
  counts: BANKS_PARAMETERS.includes("counts"),
  history: has("/v1/history"),
  explain: has("/v1/explain"),
};
