// Ask: a question, its ripple, and the evidence.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useEdited } from "../edited";
import type { Evidence, History, Turns, TurnView } from "../forms";
import { isTyping } from "../frame";
import { ProblemView } from "../problem";
import { change, place } from "../route";
import { type Failure, failureOf, get, post } from "../service";
import { bank, hasLetterKeys } from "../session";
import { count, plural, share } from "../words";
import { AsOf } from "./as_of";
import { AskedLines } from "./asked";
import { ContextView, EvidenceList, JsonView } from "./evidence";
import { layoutOf } from "./layout";
import { MEANINGS, Meanings } from "./meanings";
import { Player } from "./player";
import { rippleOf } from "./ripple";
import { SideBySide } from "./side_by_side";
import { Tabs, tabId } from "./tabs";
import { UnitDrawer } from "./unit";

/** Near misses that are asked for. */
const NEAR = 20;
/** An answer that comes within this time needs no word that it is awaited. */
const SOON_MILLISECONDS = 150;

interface Answered {
  answer: Evidence;
  tookMilliseconds: number;
  asof: string | undefined;
}

const TABS = ["Evidence", "Side by side", "Context", "JSON"] as const;

export function Ask() {
  const { q, at, asof, unit } = place.value.parameters;
  const [text, setText] = useEdited(q ?? "");
  const [answered, setAnswered] = useState<Answered>();
  const [before, setBefore] = useState<Answered>();
  const [failure, setFailure] = useState<Failure>();
  const [waits, setWaits] = useState(false);
  const [again, setAgain] = useState(0);
  const [history, setHistory] = useState<History>();
  const field = useRef<HTMLInputElement>(null);

  useEffect(() => {
    setHistory(undefined);
    if (!bank.value) return;
    const stop = new AbortController();
    // A memory that keeps no history has no stops.
    get<History>("history", { bank: bank.value }, stop.signal).then(setHistory, () => setHistory(undefined));
    return () => stop.abort();
  }, [bank.value, again]);
  useEffect(() => {
    setFailure(undefined);
    if (!q || !bank.value) {
      setAnswered(undefined);
      return;
    }
    const stop = new AbortController();
    const slow = setTimeout(() => setWaits(true), SOON_MILLISECONDS);
    const begun = performance.now();
    const asked = {
      bank: bank.value,
      text: q,
      asked_at: at,
      as_of: asof,
      near: NEAR,
      walk: true,
    };
    post<Evidence>("ask", asked, stop.signal)
      .then(
        (answer) => {
          setAnswered((last) => {
            setBefore(last && last.answer.question.text === q && last.asof !== asof ? last : undefined);
            return { answer, tookMilliseconds: performance.now() - begun, asof };
          });
        },
        (thrown) => {
          const failure = failureOf(thrown);
          if (!failure) return;
          setAnswered(undefined);
          setFailure(failure);
        },
      )
      .finally(() => {
        clearTimeout(slow);
        setWaits(false);
      });
    return () => {
      stop.abort();
      clearTimeout(slow);
    };
  }, [bank.value, q, at, asof, again]);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (!hasLetterKeys.value || isTyping(event)) return;
      if (event.key === "/") {
        event.preventDefault();
        field.current?.focus();
        field.current?.select();
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);

  const ask = (text: string) => {
    const question = text.trim();
    if (!question) return;
    // Relative times such as "yesterday" are read from this moment on, also when the address is opened later.
    const now = `${new Date().toISOString().slice(0, 16)}:00Z`;
    if (question === q) setAgain((again) => again + 1);
    else change({ bank: bank.value, q: question, at: now, unit: undefined });
  };
  return (
    <section class="ask">
      <h1 class="unseen">Ask</h1>
      <form
        class="question"
        aria-label="Ask"
        onSubmit={(event) => {
          event.preventDefault();
          ask(text);
        }}
      >
        <input
          ref={field}
          class="words"
          aria-label="Question"
          placeholder="Ask this memory a question"
          value={text}
          maxLength={8192}
          onInput={(event) => setText(event.currentTarget.value)}
          autocomplete="off"
        />
        <button type="submit" class="main">
          Ask
        </button>
      </form>
      {failure && <ProblemView failure={failure} again={() => setAgain((again) => again + 1)} />}
      {waits && (
        <p class="waits" role="status">
          Asking …
        </p>
      )}
      {!q && !failure && <Beginning ask={ask} />}
      {answered && q && (
        <Answer
          key={`${bank.value} ${q}`}
          answered={answered}
          before={before}
          history={history}
          unit={unit}
          waits={waits}
        />
      )}
    </section>
  );
}

/** Names of programs, where a source does not say what a speaker is. */
const PROGRAMS = /^(ai|agent|assistant|bot|chatgpt|claude|gemini|gpt\S*|model|system|tool|function)$|\bbot$/i;

/** Questions about the people of a bank, by their turns. Of one person alone they are that person's own. */
export function examplesOf(turns: Pick<TurnView, "speaker" | "kind">[]): string[] {
  const said = new Map<string, number>();
  for (const { speaker, kind } of turns)
    if (kind === "person" || (!kind && !PROGRAMS.test(speaker))) said.set(speaker, (said.get(speaker) ?? 0) + 1);
  const [first, second] = [...said].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  if (!first) return turns.length ? ["What was decided?", "What is still open?"] : [];
  if (!second) return ["What do I plan to do?", "What changed for me?", "Where was I last?"];
  return [`What did ${first} plan to do?`, `What did ${first} and ${second} agree on?`, `Where was ${first} last?`];
}

/** What is seen before the first question: questions of the bank's own names. */
function Beginning({ ask }: { ask: (text: string) => void }) {
  const [questions, setQuestions] = useState<string[]>([]);
  useEffect(() => {
    setQuestions([]);
    if (!bank.value) return;
    const stop = new AbortController();
    get<Turns>("turns", { bank: bank.value, limit: 200 }, stop.signal).then(
      ({ turns }) => setQuestions(examplesOf(turns)),
      () => setQuestions([]),
    );
    return () => stop.abort();
  }, [bank.value]);
  if (!bank.value) return <p class="empty">No bank has a turn yet. Live can put one.</p>;
  if (!questions.length) return null;
  return (
    <div class="empty">
      <p>
        A question is answered by what comes to mind at once, and by what those memories lead to. The picture shows
        both. For example:
      </p>
      <ul class="examples">
        {questions.map((question) => (
          <li key={question}>
            <button type="button" class="words" onClick={() => ask(question)}>
              {question}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

interface AnswerProps {
  answered: Answered;
  before?: Answered | undefined;
  history?: History | undefined;
  unit?: string | undefined;
  waits: boolean;
}

function Answer({ answered, before, history, unit, waits }: AnswerProps) {
  const { answer } = answered;
  const ripple = useMemo(() => rippleOf(answer), [answer]);
  const other = useMemo(() => before && rippleOf(before.answer), [before]);
  const layout = useMemo(
    () =>
      layoutOf(
        ripple,
        other?.units.filter((unit) => unit.fate === "evidence"),
      ),
    [ripple, other],
  );
  const differs = useMemo(() => differenceOf(ripple, other), [ripple, other]);
  const [pointed, setPointed] = useState<string>();
  const [tab, setTab] = useState<(typeof TABS)[number]>("Evidence");
  const open = (id: string | undefined) => change({ unit: id }, true);

  const { tokens, trace } = answer;
  const verdict = answer.supported ? "Supported" : "Not supported";
  const facts = [
    plural(answer.units.length, "unit"),
    tokens && plural(tokens.spent, "token"),
    trace.scale && `${plural(trace.scale.parts_total, "part")} scored`,
    `${count(Math.round(answered.tookMilliseconds))} ms`,
    answered.asof ? `as of ${answered.asof}` : "as of now",
  ].filter(Boolean);
  return (
    <div class={waits ? "answer stale" : "answer"}>
      <p class="verdict">
        <strong class={answer.supported ? "good" : "bad"}>{verdict}</strong>
        <span title={MEANINGS.sufficiency}>sufficiency {share(answer.sufficiency)}</span>
        {facts.map((fact) => (
          <span key={fact}>{fact}</span>
        ))}
      </p>
      {answer.notice && <p role="status">{`${answer.notice.message}.`}</p>}
      {!answer.supported && answer.units.length > 0 && (
        <p class="quiet">
          Nothing was found that surely supports an answer. That is a hint: the nearest units are below, and one of them
          may still hold it.
        </p>
      )}
      <AskedLines answer={answer} />
      <Meanings />
      <div class="both">
        <div class="ripple">
          <h2>Ripple</h2>
          <Player
            ripple={ripple}
            layout={layout}
            plays={!before}
            pointed={pointed ?? unit}
            fresh={differs?.fresh}
            gone={differs?.gone}
            onPoint={setPointed}
            onOpen={open}
          />
          {history && history.points.length > 0 && <AsOf history={history} asof={answered.asof} />}
          {differs && (
            <p class="quiet" aria-live="polite">
              Beside the moment before: {plural(differs.fresh.size, "new unit")}, outlined;{" "}
              {plural(differs.gone.length, "unit")} not there.
            </p>
          )}
        </div>
        <div class="found">
          <Tabs
            names={TABS}
            label="The answer"
            chosen={tab}
            counts={{ Evidence: answer.units.length }}
            choose={setTab}
          />
          <div id="found" role="tabpanel" aria-labelledby={tabId(tab)} tabIndex={tab === "Evidence" ? -1 : 0}>
            {tab === "Evidence" && (
              <EvidenceList
                answer={answer}
                ripple={ripple}
                pointed={pointed ?? unit}
                fresh={differs?.fresh}
                onPoint={setPointed}
                onOpen={open}
              />
            )}
            {tab === "Side by side" && (
              <SideBySide
                answer={answer}
                asof={answered.asof}
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

type Difference = { fresh: Set<string>; gone: ReturnType<typeof rippleOf>["units"] };

/** What is evidence at one moment and was not at the other. */
function differenceOf(
  ripple: ReturnType<typeof rippleOf>,
  other: ReturnType<typeof rippleOf> | undefined,
): Difference | undefined {
  if (!other) return undefined;
  const evidence = (of: typeof ripple) => of.units.filter((unit) => unit.fate === "evidence");
  const [now, then] = [evidence(ripple), evidence(other)];
  const [here, there] = [new Set(now.map((unit) => unit.id)), new Set(then.map((unit) => unit.id))];
  return {
    fresh: new Set(now.filter((unit) => !there.has(unit.id)).map((unit) => unit.id)),
    gone: then.filter((unit) => !here.has(unit.id)),
  };
}
