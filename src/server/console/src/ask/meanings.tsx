// What the numbers of an answer mean, in a sentence each: as a hint on the number, and as a list beside the answer.

export const MEANINGS = {
  sufficiency:
    "How sure recollection is that the memory supports an answer, from 0 to 1. Where it is low, the answer is called not supported. It is a hint: what is quoted may still hold the answer.",
  share:
    "How familiar a unit is with the question: 1 is the bank's best part, 0 its background. What is above the cutoff is quoted.",
  rho: "ρ, the order of the evidence: the unit with the greatest ρ stands first. It weighs how and how often a unit was reached.",
};

export const TERMS = ["meaning", "pair", "words", "speaker", "month", "marks", "around", "session", "rerank"] as const;

export type Term = (typeof TERMS)[number];

export const TERM_MEANINGS: Record<Term, string> = {
  meaning: "How near the question and the part's best sentence are in meaning",
  pair: "The same of the part with the turn before it",
  words: "The words that the part and the turns around it share with the question, rare ones more",
  speaker: "Whether a person speaks whom the question names",
  month: "Whether it was said when the question says",
  marks: "Times and names that it says, less where it only asks",
  around: "A share of the scores of the turns around it",
  session: "A share of the scores of the best parts of its session",
  rerank: "What a reranker adds",
};

/** The list, which opens on demand. */
export function Meanings() {
  return (
    <details class="meanings">
      <summary>What the numbers mean</summary>
      <dl>
        <dt>sufficiency</dt>
        <dd>{MEANINGS.sufficiency}</dd>
        <dt>share</dt>
        <dd>{MEANINGS.share}</dd>
        <dt>ρ</dt>
        <dd>{MEANINGS.rho}</dd>
      </dl>
    </details>
  );
}
