// Trace: why did it not remember? A question and a turn; the step that decided, and what would have changed it.
import { useEffect, useRef, useState } from "preact/hooks";
import { Copied } from "./ask/evidence";
import { MEANINGS, TERM_MEANINGS, TERMS } from "./ask/meanings";
import { useEdited } from "./edited";
import type { ExplainStep, Explanation, FamiliarityTerms, StepState } from "./forms";
import { ProblemView } from "./problem";
import { change, place } from "./route";
import { type Failure, failureOf, post } from "./service";
import { bank } from "./session";
import { TurnField } from "./turn_field";
import { saidAt, share } from "./words";

const NAMES: Record<string, string> = {
  stored: "Stored",
  reflected: "Reflected",
  window: "Window",
  unit: "Unit",
  vectors: "Vectors",
  edges: "Edges",
  candidate: "Candidate",
  score: "Score",
  cutoff: "Cutoff",
  walk: "Walk",
  assembly: "Assembly",
  context: "Context",
};

const STATES: Record<StepState, { mark: string; text: string }> = {
  passed: { mark: "✓", text: "passed" },
  failed: { mark: "✗", text: "failed" },
  not_reached: { mark: "–", text: "not reached" },
  unknown: { mark: "?", text: "not known here" },
};

export function Trace() {
  const { q, at, asof, turn, unit, part } = place.value.parameters;
  const [text, setText] = useEdited(q ?? "");
  const [explained, setExplained] = useState<Explanation>();
  const [failure, setFailure] = useState<Failure>();
  const [waits, setWaits] = useState(false);
  const [again, setAgain] = useState(0);
  const [missing, setMissing] = useState<string>();
  const meant = useRef<() => Promise<string | undefined>>(async () => undefined);
  useEffect(() => {
    setFailure(undefined);
    setExplained(undefined);
    setMissing(undefined);
    if (!q || !bank.value || (!turn && !unit)) return;
    const stop = new AbortController();
    setWaits(true);
    const subject = turn ? { turn } : { unit, part: part === undefined ? undefined : Number(part) };
    post<Explanation>("explain", { bank: bank.value, text: q, asked_at: at, as_of: asof, ...subject }, stop.signal)
      .then(setExplained, (thrown) => setFailure(failureOf(thrown)))
      .finally(() => {
        if (!stop.signal.aborted) setWaits(false);
      });
    return () => stop.abort();
  }, [bank.value, q, at, asof, turn, unit, part, again]);
  return (
    <section class="trace">
      <h1>Why did it not remember?</h1>
      <form
        class="question"
        onSubmit={async (event) => {
          event.preventDefault();
          const question = text.trim();
          const chosen = await meant.current();
          if (!question) return setMissing("Write the question, too.");
          if (chosen === undefined && !unit) {
            return setMissing("Choose a turn, too: no turn of this bank has that id or those words.");
          }
          setMissing(undefined);
          const subject = chosen === undefined ? {} : { turn: chosen, unit: undefined, part: undefined };
          if (question === q && (chosen === undefined || chosen === turn)) setAgain((again) => again + 1);
          else if (question === q) change({ bank: bank.value, ...subject });
          else
            change({ bank: bank.value, q: question, at: `${new Date().toISOString().slice(0, 16)}:00Z`, ...subject });
        }}
      >
        <input
          class="words"
          aria-label="Question"
          placeholder="The question"
          value={text}
          maxLength={8192}
          autocomplete="off"
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <TurnField
          value={turn ?? ""}
          meant={meant}
          choose={(turn) =>
            change({
              bank: bank.value,
              turn,
              unit: undefined,
              part: undefined,
              ...(text.trim() && text.trim() !== q ? { q: text.trim() } : {}),
            })
          }
        />
        <button type="submit" class="main">
          Explain
        </button>
      </form>
      {unit && !turn && (
        <p class="quiet">
          Of unit <code>{unit}</code>
          {part !== undefined && (
            <>
              , part {part}.{" "}
              <button type="button" class="link" onClick={() => change({ part: undefined })}>
                All of it
              </button>
            </>
          )}
        </p>
      )}
      {asof && <p class="quiet">As of {asof}.</p>}
      {missing && <p role="alert">{missing}</p>}
      {failure && <ProblemView failure={failure} again={() => setAgain((again) => again + 1)} />}
      {waits && <p role="status">Looking at each step …</p>}
      {!explained && !failure && !waits && (
        <p class="empty">
          Write a question and choose a turn. The page goes through the twelve steps from the stored turn to the line in
          the agent's context, and opens the one that decided.
        </p>
      )}
      {explained && <ExplanationView explained={explained} />}
    </section>
  );
}

function ExplanationView({ explained }: { explained: Explanation }) {
  const { subject, quoted, failed, sentence, change: remedy, steps, others = [] } = explained;
  return (
    <>
      <div class={quoted ? "outcome good" : "outcome bad"} role="status">
        <p class="outcome-sentence words">{sentence}</p>
        {remedy && <p>{remedy}</p>}
      </div>
      {subject?.text && (
        <blockquote class="words">
          <p>
            <b>{subject.speaker}</b> {subject.text}
          </p>
          <small>
            {[
              subject.said_at && saidAt(subject.said_at),
              subject.turn && `turn ${subject.turn}`,
              subject.unit && `unit ${subject.unit}`,
            ]
              .filter(Boolean)
              .join(" · ")}
          </small>
        </blockquote>
      )}
      <ol class="rail">
        {steps.map((step) => (
          <StepView
            key={step.step}
            step={step}
            decided={step.step === failed}
            opens={failed === undefined ? step.step === "context" : step.step === failed}
          />
        ))}
      </ol>
      {others.length > 0 && (
        <p class="quiet">
          Other parts:{" "}
          {others.map((other, at) => (
            <span key={other.part}>
              {at > 0 && "; "}
              <button
                type="button"
                class="link"
                onClick={() => change({ turn: undefined, unit: other.unit, part: String(other.part) })}
              >
                part {other.part}
              </button>{" "}
              with share {share(other.share)}
              {other.quoted && ", quoted"}
            </span>
          ))}
          .
        </p>
      )}
      <Copied text={JSON.stringify(explained, null, 2)} name="Copy the explanation as JSON" />
    </>
  );
}

function StepView({ step, decided, opens }: { step: ExplainStep; decided: boolean; opens: boolean }) {
  const { mark, text } = STATES[step.state];
  const name = NAMES[step.step] ?? step.step;
  return (
    <li class={`${step.state}${decided ? " decided" : ""}`}>
      <details open={opens}>
        <summary>
          <i aria-hidden="true">{mark}</i>
          <b>{name}</b>
          <span class="unseen">, {text}</span>
          <span class="words">{step.sentence}</span>
        </summary>
        {step.change && <p class="remedy">{step.change}</p>}
        <Numbers step={step} />
      </details>
    </li>
  );
}

interface Compared {
  unit?: string;
  turn?: string;
  score: number;
  share: number;
  terms: FamiliarityTerms;
}

function Numbers({ step }: { step: ExplainStep }) {
  const { numbers } = step;
  if (step.step === "score" && numbers.terms) {
    const columns: [string, Compared | undefined][] = [
      ["this part", numbers as unknown as Compared],
      ["last quoted", numbers.last_quoted as Compared | undefined],
      ["best", numbers.best as Compared | undefined],
    ];
    const shown = columns.filter(
      (column): column is [string, Compared] => column[1] !== undefined && column[1] !== null,
    );
    return (
      <div class="wide">
        <table class="compared">
          <thead>
            <tr>
              <th scope="col">term</th>
              {shown.map(([name]) => (
                <th scope="col" key={name}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {TERMS.filter((term) => shown.some(([, part]) => part.terms[term] !== undefined)).map((term) => (
              <tr key={term} title={TERM_MEANINGS[term]} class={numbers.lacks === term ? "lacks" : ""}>
                <th scope="row">
                  {term}
                  {numbers.lacks === term && " (lacks most)"}
                </th>
                {shown.map(([name, part]) => (
                  <td key={name} title={String(part.terms[term] ?? 0)}>
                    {share(part.terms[term] ?? 0)}
                  </td>
                ))}
              </tr>
            ))}
            <tr class="sum" title={MEANINGS.share}>
              <th scope="row">share</th>
              {shown.map(([name, part]) => (
                <td key={name} title={String(part.share)}>
                  {share(part.share)}
                </td>
              ))}
            </tr>
          </tbody>
        </table>
      </div>
    );
  }
  if (step.step === "context" && typeof numbers.context === "string") {
    const line = typeof numbers.text === "string" ? numbers.text : "";
    const at = line ? numbers.context.indexOf(line) : -1;
    return (
      <pre class="context words">
        {at < 0 ? numbers.context : numbers.context.slice(0, at)}
        {at >= 0 && <mark>{line}</mark>}
        {at >= 0 && numbers.context.slice(at + line.length)}
      </pre>
    );
  }
  return <Values value={numbers} />;
}

/** What a step has counted: names and values, those with parts as tables. */
function Values({ value }: { value: Record<string, unknown> }) {
  const entries = Object.entries(value).filter(([, value]) => value !== null && value !== undefined);
  if (!entries.length) return null;
  return (
    <dl class="values">
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>{name.replaceAll("_", " ")}</dt>
          <dd class="words">
            <Value value={value} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Value({ value }: { value: unknown }) {
  if (Array.isArray(value)) {
    if (!value.length) return <>none</>;
    if (value.every((entry) => typeof entry !== "object" || entry === null)) return <>{value.join(", ")}</>;
    return (
      <ul class="plain">
        {value.map((entry) => (
          <li key={JSON.stringify(entry)}>
            <Value value={entry} />
          </li>
        ))}
      </ul>
    );
  }
  if (typeof value === "object" && value !== null) {
    const parts = Object.entries(value).filter(
      ([, part]) => part !== null && (!Array.isArray(part) || part.length > 0),
    );
    return (
      <>
        {parts.map(([name, part], at) => (
          <span key={name}>
            {at > 0 && " · "}
            {name.replaceAll("_", " ")} <Value value={part} />
          </span>
        ))}
      </>
    );
  }
  if (typeof value === "number" && !Number.isInteger(value)) return <span title={String(value)}>{share(value)}</span>;
  if (typeof value === "boolean") return <>{value ? "yes" : "no"}</>;
  return <>{String(value)}</>;
}
