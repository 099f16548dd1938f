// One question of a report: its ripple, with the expected evidence found or lost in it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ContextView, EvidenceList, JsonView } from "../ask/evidence";
import { layoutOf } from "../ask/layout";
import { Player } from "../ask/player";
import type { Ripple } from "../ask/ripple";
import { Tabs, tabId } from "../ask/tabs";
import { UnitDrawer } from "../ask/unit";
import { ProblemView } from "../problem";
import { change, place } from "../route";
import { type Failure, failureOf, getFile } from "../service";
import { count, plural, share } from "../words";
import { expectedRipple, filtered, outcomeOf, STEPS } from "./expected";
import type { ExpectedTurn, QuestionReport, ReportFigures } from "./forms";

const TABS = ["Expected", "Evidence", "Context", "JSON"] as const;

export function Question({ report, file }: { report: ReportFigures; file: string }) {
  const [question, setQuestion] = useState<QuestionReport>();
  const [failure, setFailure] = useState<Failure>();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    const stop = new AbortController();
    getFile<QuestionReport>(`questions/${encodeURIComponent(file)}`, stop.signal).then(setQuestion, (thrown) =>
      setFailure(failureOf(thrown)),
    );
    return () => stop.abort();
  }, []);
  useEffect(() => heading.current?.focus(), [question]);
  const lines = filtered(report.questions, place.value.parameters);
  const at = lines.findIndex((line) => line.file === file);
  const to = (by: number) => {
    const line = at < 0 ? undefined : lines[at + by];
    return (
      <button type="button" disabled={!line} onClick={() => line && change({ question: line.file, unit: undefined })}>
        {by < 0 ? "Before" : "Next"}
      </button>
    );
  };
  return (
    <section class="report one">
      <div class="ways">
        <button type="button" onClick={() => change({ question: undefined, unit: undefined })}>
          All questions
        </button>
        {to(-1)}
        {to(1)}
        {at >= 0 && (
          <span class="quiet">
            {count(at + 1)} of {count(lines.length)}
          </span>
        )}
      </div>
      {failure && <ProblemView failure={failure} />}
      {!question && !failure && <p role="status">Opening the question …</p>}
      {question && (
        <>
          <h1 class="words" tabIndex={-1} ref={heading}>
            {question.answer.question.text}
          </h1>
          <Asked question={question} />
        </>
      )}
    </section>
  );
}

function Asked({ question }: { question: QuestionReport }) {
  const { answer, evidence } = question;
  const { unit } = place.value.parameters;
  const { ripple, ringed } = useMemo(() => expectedRipple(question), [question]);
  const layout = useMemo(() => layoutOf(ripple), [ripple]);
  const [pointed, setPointed] = useState<string>();
  const [tab, setTab] = useState<(typeof TABS)[number]>("Expected");
  const open = (id: string | undefined) => change({ unit: id }, true);
  const found = evidence.filter((turn) => turn.found).length;
  const outcome = outcomeOf({ supported: question.supported ?? null, evidence: evidence.length, found });
  const facts = [
    `${question.id}, ${question.category}`,
    question.facts !== undefined && question.facts !== null && `facts ${share(question.facts)}`,
    plural(answer.units.length, "unit"),
    plural(question.tokens, "token"),
    question.first_hop_tokens !== undefined &&
      question.first_hop_tokens !== null &&
      `${count(question.first_hop_tokens)} by the first hop alone`,
    `sufficiency ${share(answer.sufficiency)}`,
  ].filter(Boolean);
  return (
    <div class="answer">
      <p class="verdict">
        <strong class={outcome === "missed" ? "bad" : "good"}>
          {outcome === "unasked"
            ? question.supported === false
              ? `No answer is expected${answer.supported ? "" : ", and none is given"}`
              : "The file names no evidence"
            : outcome === "found"
              ? `All evidence found, ${found} of ${evidence.length}`
              : `Evidence lost, ${found} of ${evidence.length} found`}
        </strong>
        {facts.map((fact) => (
          <span key={String(fact)}>{fact}</span>
        ))}
      </p>
      {question.reference && (
        <p class="words">
          <span class="quiet">Expected answer:</span> {question.reference}
        </p>
      )}
      <div class="both">
        <div class="ripple">
          <h2>Ripple</h2>
          <Player
            ripple={ripple}
            layout={layout}
            plays={false}
            pointed={pointed ?? unit}
            ringed={ringed}
            onPoint={setPointed}
            onOpen={open}
          />
        </div>
        <div class="found">
          <Tabs
            names={TABS}
            label="The question"
            chosen={tab}
            counts={{ Expected: evidence.length, Evidence: answer.units.length }}
            choose={setTab}
          />
          <div id="found" role="tabpanel" aria-labelledby={tabId(tab)} tabIndex={tab === "Evidence" ? -1 : 0}>
            {tab === "Expected" && (
              <ExpectedList
                evidence={evidence}
                ripple={ripple}
                pointed={pointed ?? unit}
                onPoint={setPointed}
                onOpen={open}
              />
            )}
            {tab === "Evidence" && (
              <EvidenceList
                answer={answer}
                ripple={ripple}
                pointed={pointed ?? unit}
                onPoint={setPointed}
                onOpen={open}
              />
            )}
            {tab === "Context" && <ContextView answer={answer} />}
            {tab === "JSON" && <JsonView answer={answer} />}
          </div>
        </div>
      </div>
      {unit && <UnitDrawer id={unit} answer={answer} ripple={ripple} close={() => open(undefined)} />}
    </div>
  );
}

interface ListProps {
  evidence: ExpectedTurn[];
  ripple: Ripple;
  pointed: string | undefined;
  onPoint: (id: string | undefined) => void;
  onOpen: (id: string) => void;
}

function ExpectedList({ evidence, ripple, pointed, onPoint, onOpen }: ListProps) {
  const shown = new Set(ripple.units.map((unit) => unit.id));
  if (!evidence.length) return <p class="empty">The file names no evidence turns for this question.</p>;
  return (
    <ol class="evidence expected">
      {evidence.map((turn) => {
        const unit = [...turn.units, turn.lost?.standing?.unit].find((id) => id !== undefined && shown.has(id));
        return (
          <li key={turn.turn} class={unit !== undefined && pointed === unit ? "pointed" : ""}>
            <button
              type="button"
              class="row"
              data-unit={unit}
              aria-disabled={unit === undefined}
              onClick={() => unit !== undefined && onOpen(unit)}
              onFocus={() => onPoint(unit)}
              onBlur={() => onPoint(undefined)}
              onPointerEnter={() => onPoint(unit)}
              onPointerLeave={() => onPoint(undefined)}
            >
              <span class={turn.found ? "place good" : "place bad"} aria-hidden="true">
                {turn.found ? "✓" : "✗"}
              </span>
              <span class="said words">
                <span>
                  <b>{turn.speaker}</b> {turn.text}
                </span>
              </span>
              <span class="facts">
                <span>turn {turn.turn}</span>
                <span class={turn.found ? "good" : "bad"}>{fateOf(turn)}</span>
              </span>
              {turn.lost && !turn.found && <span class="facts sentence-of">{turn.lost.sentence}</span>}
            </button>
          </li>
        );
      })}
    </ol>
  );
}

/** What became of a turn, in a few words. */
function fateOf({ found, found_by_first_hop, lost }: ExpectedTurn): string {
  if (found) return found_by_first_hop === false ? "found by the walk" : "found";
  const at = lost ? `lost at: ${STEPS[lost.at].toLowerCase()}` : "lost";
  return found_by_first_hop ? `${at}, though the first hop alone finds it` : at;
}
