// Where the page is: its screen and what it shows, in the address's fragment. A fragment never reaches a server.
import { signal } from "@preact/signals";
import { IS_REPORT } from "./mode";

export const SCREENS = ["ask", "trace", "live", "banks", "profile", "health"] as const;
export type Screen = (typeof SCREENS)[number] | "report";
export type Parameters = Partial<
  Record<
    | "bank"
    | "q"
    | "at"
    | "asof"
    | "from"
    | "to"
    | "unit"
    | "part"
    | "turn"
    | "question"
    | "category"
    | "show"
    | "lost"
    | "person"
    | "past",
    string
  >
>;
export interface Place {
  screen: Screen;
  parameters: Parameters;
}

export function parsePlace(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const screen = IS_REPORT ? "report" : (SCREENS.find((screen) => screen === path) ?? "ask");
  return { screen, parameters: Object.fromEntries(new URLSearchParams(query)) };
}

export function hashOf(screen: Screen, parameters: Parameters): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value) query.set(name, value);
  const text = query.toString();
  return `#/${screen}${text ? `?${text}` : ""}`;
}

export const place = signal(parsePlace(location.hash));
addEventListener("hashchange", () => {
  place.value = parsePlace(location.hash);
});

/** Goes to a screen; a parameter that is undefined is taken away. */
export function go(screen: Screen, parameters: Parameters, replaces = false): void {
  const hash = hashOf(screen, parameters);
  if (hash === location.hash) return;
  if (replaces) {
    history.replaceState(null, "", hash);
    place.value = parsePlace(hash);
  } else {
    location.hash = hash;
  }
}

/** Stays on the screen, with other parameters. */
export function change(parameters: Parameters, replaces = false): void {
  go(place.value.screen, { ...place.value.parameters, ...parameters }, replaces);
}
