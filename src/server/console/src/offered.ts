// What the service of this page offers. The page is built for one document, that of its program: a screen whose route
// is not in it is left out.
declare const PATHS: string[];
declare const ASK_FIELDS: string[];
declare const BANKS_PARAMETERS: string[];

export const OFFERED = {
  near: ASK_FIELDS.includes("near"),
  token: PATHS.includes("/v1/token"),
  counts: BANKS_PARAMETERS.includes("counts"),
  history: PATHS.includes("/v1/history"),
  explain: PATHS.includes("/v1/explain"),
};
