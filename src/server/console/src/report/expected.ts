// What a report says of its questions, and the ripple of one with its expected evidence in it.
//
// In: the lines of a report, the file of a question. Out: which lines a filter leaves; the ripple with the units that
// hold expected evidence, each found or lost. Functions of these alone.
import type { Ringed } from "../ask/picture";
import { type Ripple, rippleOf } from "../ask/ripple";
import type { LostAt, QuestionLine, QuestionReport } from "./forms";

/** The steps that can lose evidence, in their order. */
export const STEPS: Record<LostAt, string> = {
  unit: "Unit",
  candidate: "Candidate",
  cutoff: "Cutoff",
  walk: "Walk",
  assembly: "Assembly",
  context: "Context",
};

export type Outcome = "found" | "missed" | "unasked";

/** Whether all evidence was found; "unasked" where none is expected. */
export function outcomeOf(line: Pick<QuestionLine, "supported" | "evidence" | "found">): Outcome {
  if (line.supported === false || line.evidence === 0) return "unasked";
  return line.found === line.evidence ? "found" : "missed";
}

export interface Filter {
  show?: string | undefined;
  category?: string | undefined;
  lost?: string | undefined;
}

export function filtered(lines: QuestionLine[], { show, category, lost }: Filter): QuestionLine[] {
  return lines.filter(
    (line) =>
      (!show || outcomeOf(line) === show) &&
      (!category || line.category === category) &&
      (!lost || line.lost_at.some((at) => at === lost)),
  );
}

/** The ripple of a question's answer; lost evidence that its trace does not name stands where it was scored. */
export function expectedRipple(question: QuestionReport): { ripple: Ripple; ringed: Ringed } {
  const ripple = rippleOf(question.answer);
  const ringed: Ringed = new Map();
  const units = new Map(ripple.units.map((unit) => [unit.id, unit]));
  // Without a scale the other units have no share either.
  const hasShares = ripple.units.some((unit) => unit.share !== undefined);
  const quoting = (turn: string) =>
    question.answer.units.filter((unit) => unit.excerpts.some((excerpt) => excerpt.turn === turn)).map(({ id }) => id);
  for (const { turn, speaker, text, units: holding, found, lost } of question.evidence) {
    if (found) {
      const quoted = quoting(turn);
      for (const id of quoted.length ? quoted : holding) if (units.has(id)) ringed.set(id, "found");
      continue;
    }
    const standing = lost?.standing ?? undefined;
    const known = holding.filter((id) => units.has(id));
    if (!known.length && standing) {
      units.set(standing.unit, {
        id: standing.unit,
        label: `${speaker}: ${text}`,
        saidAt: standing.said_at,
        share: hasShares ? standing.share : undefined,
        fate: "near",
        anchor: false,
        hops: 0,
        step: 1,
        reason: lost?.sentence,
        turn,
      });
    }
    for (const id of known.length ? known : standing ? [standing.unit] : []) {
      // A unit that one expected turn is quoted from may hold another one that is lost.
      if (ringed.get(id) !== "found") ringed.set(id, "lost");
      const unit = units.get(id);
      if (unit && unit.fate !== "evidence" && lost) unit.reason = lost.sentence;
    }
  }
  return { ripple: { ...ripple, units: [...units.values()] }, ringed };
}
