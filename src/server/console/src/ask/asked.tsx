// What was read in the question: the time that it names, and whose words it asks for.
import type { AskedFormName, AskedPeriod, Evidence } from "../forms";
import { plural, saidAt } from "../words";

const FORMS: Record<AskedFormName, string> = {
  about_me: "about the asker",
  order: "an order",
  summary: "a summary",
  told: "what the assistant said",
  task: "a task",
  general: "about anyone",
};

export function AskedLines({ answer }: { answer: Evidence }) {
  const { period, form } = answer.trace;
  if (!period && !form) return null;
  return (
    <p class="quiet reading">
      {period && <span>{periodWords(period)}</span>}
      {form && <span>{`Form: ${FORMS[form.form]}${form.certain ? "" : ", as no other form was recognised"}.`}</span>}
    </p>
  );
}

/** "Time “last month”: from 1 Oct 2026, 00:00 to 31 Oct 2026, 23:59, by the asker's clock. …" */
export function periodWords(period: AskedPeriod): string {
  const { words, from, until, clock, reading, of, used, parts } = period;
  const ends = [from && `from ${saidAt(from)}`, until && `${from ? "to" : "until"} ${saidAt(until)}`].filter(Boolean);
  const when = ends.length > 0 ? ends.join(" ") : "of any year";
  const whose = clock === "asker" ? "the asker's clock" : "the clock of each turn";
  const sure = reading === "certain" ? "" : ", as far as it could be inferred";
  const what = of === "said" ? "What was said then" : "What was said or happens then";
  const use = used === "chooses" ? "comes first" : "scores higher";
  return `Time “${words.join(" ")}”: ${when}, by ${whose}${sure}. ${what} ${use}; ${plural(parts, "part lies", "parts lie")} in it.`;
}
