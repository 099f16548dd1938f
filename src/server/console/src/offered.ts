// What the service of this page has beyond its first interface.
export const OFFERED = { scale: false, token: false, counts: false, history: false, explain: false };
