// Flat beside recollection: what two lists have in common.
//
// In: an answer with its flat rankings, and one of these. Out: the rows of both lists. A function of the answer alone.
import type { Evidence, FlatUnit } from "../forms";
import { count, plural } from "../words";

/** The rankings without the graph, as the answer and as the page names them. */
export const RANKINGS = { meaning: "meaning", words: "words", same_score: "same score" } as const;
export type Ranking = keyof typeof RANKINGS;

export interface ComparedUnit {
  id: string;
  label: string;
  saidAt: string;
  /** Place in the flat ranking, from 1; none where it is not there. */
  flat?: number;
  /** Place in the recollection, from 1; none where it is not there. */
  recollection?: number;
  /** The score of the flat ranking. */
  score?: number;
}

export interface Comparison {
  sentence: string;
  /** Each list in its order. */
  flat: ComparedUnit[];
  recollection: ComparedUnit[];
  /** Both as one list, by the better of the two places. */
  merged: ComparedUnit[];
}

export function comparisonOf(answer: Evidence, ranking: Ranking): Comparison | undefined {
  const found = answer.flat?.[ranking];
  if (!found) return undefined;
  const all = new Map<string, ComparedUnit>();
  answer.units.forEach((unit, at) => {
    const [first] = unit.excerpts;
    const label = first ? `${first.speaker}: ${first.text}` : unit.restatement;
    all.set(unit.id, { id: unit.id, label, saidAt: unit.said_at, recollection: at + 1 });
  });
  found.units.forEach((unit: FlatUnit, at) => {
    const known = all.get(unit.id) ?? { id: unit.id, label: unit.label, saidAt: unit.said_at };
    all.set(unit.id, { ...known, flat: at + 1, score: unit.score });
  });
  const units = [...all.values()];
  const best = (unit: ComparedUnit) => Math.min(unit.flat ?? Infinity, unit.recollection ?? Infinity);
  const by = (place: (unit: ComparedUnit) => number | undefined) =>
    units.filter((unit) => place(unit) !== undefined).sort((a, b) => (place(a) ?? 0) - (place(b) ?? 0));
  const both = units.filter((unit) => unit.flat && unit.recollection).length;
  return {
    sentence:
      `flat ${plural(found.units.length, "unit")}, ${plural(found.tokens, "token")} · ` +
      `recollection ${count(answer.units.length)}, ${count(answer.tokens?.spent ?? 0)} · ${count(both)} in both`,
    flat: by((unit) => unit.flat),
    recollection: by((unit) => unit.recollection),
    // The sort is stable: of two equal places, that of the recollection comes first.
    merged: [...units].sort((a, b) => best(a) - best(b)),
  };
}
