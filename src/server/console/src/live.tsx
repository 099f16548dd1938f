// Live: turns as they come with what becomes of them, and a question that is followed.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Row, rowsOf, withEvent } from "./arrivals";
import type {
  BankProgress,
  ChangedEdges,
  Delta,
  Problem,
  Progress,
  RemovedUnit,
  Skipped,
  SubscribedUnit,
  Told,
  Turns,
} from "./forms";
import { ProblemView } from "./problem";
import { Failure, failureOf, follow, followGet, get, post } from "./service";
import { bank, may } from "./session";
import { count, plural, saidAt, share, short } from "./words";

const AGAIN_MILLISECONDS = 2000;
const MOST_TURNS = 100;

export function Live() {
  return (
    <section class="live">
      <h1>Live</h1>
      <div class="both">
        <Arriving key={`turns ${bank.value}`} />
        <div>
          <Followed key={`question ${bank.value}`} />
          {may("write") && <PutTurn />}
        </div>
      </div>
    </section>
  );
}

function Arriving() {
  const [rows, setRows] = useState<Row[]>([]);
  const [progress, setProgress] = useState<BankProgress>();
  const [edges, setEdges] = useState<ChangedEdges>();
  const [gone, setGone] = useState<string>();
  const [notice, setNotice] = useState("");
  const [failure, setFailure] = useState<Failure>();
  const [connection, setConnection] = useState<"connecting" | "on" | "off">("connecting");
  const [pauses, setPauses] = useState(false);
  const [speaker, setSpeaker] = useState("");
  const last = useRef<string>(undefined);
  useEffect(() => {
    if (pauses || !bank.value) return;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const listen = async () => {
      try {
        const asked = { bank: bank.value, last_event_id: last.current };
        for await (const { event, id, data } of followGet("events", asked, stop.signal)) {
          setConnection("on");
          setFailure(undefined);
          if (event === "problem") {
            const problem = data as Problem;
            throw new Failure(problem.status, problem);
          }
          if (event === "progress") {
            // What was there before the page was opened has not just come.
            if (last.current === undefined) setRows(await turnsThatAreThere(stop.signal));
            last.current = id;
            setProgress(data as BankProgress);
          } else if (event === "edges") setEdges(data as ChangedEdges);
          else if (event === "skipped") setNotice(`${plural((data as Skipped).events, "event")} left out here`);
          else if (event === "reset") {
            setNotice((data as Told).reason);
            last.current = undefined;
          } else {
            if (event === "unit_removed") setGone((data as RemovedUnit).label ?? (data as RemovedUnit).id);
            setRows((rows) => withEvent(rows, { event, data }));
          }
        }
      } catch (thrown) {
        const failure = failureOf(thrown);
        if (!failure) return;
        setFailure(failure);
        // Another try does not help where the request itself is refused.
        if (failure.status >= 400 && failure.status < 500 && failure.status !== 429) return;
      }
      if (stop.signal.aborted) return;
      setConnection("off");
      timer = setTimeout(listen, AGAIN_MILLISECONDS);
    };
    void listen();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [pauses, bank.value]);
  const speakers = [...new Set([speaker, ...rows.map((row) => row.speaker)])].filter(Boolean).sort();
  const shown = speaker ? rows.filter((row) => row.speaker === speaker) : rows;
  return (
    <div>
      <div class="head">
        <h2>Turns, newest first</h2>
        <button type="button" onClick={() => setPauses(!pauses)} aria-pressed={pauses}>
          {pauses ? "Go on" : "Pause"}
        </button>
      </div>
      <p class="verdict" aria-live="polite">
        {progress && (
          <>
            <span>{plural(progress.units, "unit")}</span>
            <span>{plural(progress.semantic_edges, "semantic edge")}</span>
            <span>{plural(progress.structural_edges, "structural edge")}</span>
          </>
        )}
        {edges && (
          <span>
            last change of edges: +{count(edges.added)} −{count(edges.removed)}
          </span>
        )}
        {gone && (
          <span>
            last unit that went: <span class="words">{short(gone, 60)}</span>
          </span>
        )}
        {pauses && <span>paused</span>}
        {!pauses && connection === "off" && <span class="bad">not connected; tries again in a moment</span>}
      </p>
      {notice && (
        <p class="quiet" role="status">
          {notice}
        </p>
      )}
      <label class="filter">
        Speaker
        <select value={speaker} onChange={(event) => setSpeaker(event.currentTarget.value)}>
          <option value="">everybody</option>
          {speakers.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      {failure && <ProblemView failure={failure} />}
      <ol class="turn-list">
        {shown.map((row) => (
          <li
            key={row.rejected ? `rejected ${row.rejected.offset}` : row.turn}
            class={row.rejected ? "rejected" : row.fresh ? "fresh" : ""}
          >
            {row.rejected ? (
              <p>
                <b class="bad">Rejected</b> <span class="words">{row.rejected.reason}</span>
              </p>
            ) : row.deleted ? (
              <p class="quiet">Deleted</p>
            ) : (
              <p class="words">
                <b>{row.speaker}</b> {short(row.text, 280)}
              </p>
            )}
            <small>{factsOf(row).join(" · ")}</small>
          </li>
        ))}
      </ol>
      {shown.length === 0 && !failure && <p class="empty">No turn yet.</p>}
    </div>
  );
}

/** The latest turns; none where the log cannot list them, or the bank has none. */
async function turnsThatAreThere(signal: AbortSignal): Promise<Row[]> {
  try {
    return rowsOf((await get<Turns>("turns", { bank: bank.value, limit: MOST_TURNS }, signal)).turns);
  } catch (thrown) {
    if (failureOf(thrown) === undefined) throw thrown;
    return [];
  }
}

function factsOf(row: Row): string[] {
  if (row.rejected) {
    return [...(row.turn ? [`turn ${row.turn}`] : []), `dead letter ${row.rejected.offset}`];
  }
  const facts = [saidAt(row.time), row.turn];
  if (row.session) facts.push(`session ${row.session}`);
  if (row.units.length) facts.push(row.units.length === 1 ? `unit ${row.units[0]}` : plural(row.units.length, "unit"));
  if (row.closed) facts.push("window closed");
  if (row.fresh) facts.push("new");
  return facts;
}

interface Shown {
  units: Map<string, SubscribedUnit>;
  order: string[];
  fresh: Set<string>;
}

function Followed() {
  const [text, setText] = useState("");
  const [question, setQuestion] = useState("");
  const [shown, setShown] = useState<Shown>({ units: new Map(), order: [], fresh: new Set() });
  const [progress, setProgress] = useState<Progress>();
  const [changes, setChanges] = useState("");
  const [failure, setFailure] = useState<Failure>();
  useEffect(() => {
    setShown({ units: new Map(), order: [], fresh: new Set() });
    setProgress(undefined);
    setChanges("");
    if (!question || !bank.value) return;
    const stop = new AbortController();
    let last: string | undefined;
    let timer: ReturnType<typeof setTimeout>;
    const listen = async () => {
      try {
        const asked = { bank: bank.value, text: question, last_event_id: last };
        for await (const { event, id, data } of follow("subscribe", asked, stop.signal)) {
          setFailure(undefined);
          if (id) last = id;
          if (event === "progress") setProgress(data as Progress);
          else if (event === "snapshot") {
            const { from, units } = data as { from: number; units: SubscribedUnit[] };
            setShown((before) => withSnapshot(before, from, units));
          } else if (event === "problem") {
            const problem = data as Problem;
            throw new Failure(problem.status, problem);
          } else if (event === "delta") {
            const delta = data as Delta;
            setShown((before) => withDelta(before, delta));
            setChanges(`${delta.added.length} came, ${delta.removed.length} went, ${delta.updated.length} changed`);
          }
        }
      } catch (thrown) {
        const failure = failureOf(thrown);
        if (!failure) return;
        setFailure(failure);
        // Another try does not help where the request itself is refused.
        if (failure.status >= 400 && failure.status < 500 && failure.status !== 429) return;
      }
      if (!stop.signal.aborted) timer = setTimeout(listen, 2000);
    };
    void listen();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [question, bank.value]);
  return (
    <>
      <h2>Follow a question</h2>
      <form
        class="question"
        onSubmit={(event) => {
          event.preventDefault();
          setQuestion(text.trim());
        }}
      >
        <input
          class="words"
          aria-label="Question to follow"
          placeholder="Its evidence changes as turns come"
          value={text}
          autocomplete="off"
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <button type="submit">Follow</button>
      </form>
      {failure && <ProblemView failure={failure} />}
      {question && progress && (
        <p class="verdict" aria-live="polite">
          <strong class={progress.supported ? "good" : "bad"}>
            {progress.supported ? "Supported" : "Not supported"}
          </strong>
          <span>sufficiency {share(progress.sufficiency)}</span>
          <span>{plural(progress.units, "unit")}</span>
          {changes && <span>last change: {changes}</span>}
        </p>
      )}
      <ol class="evidence followed">
        {shown.order.map((id, at) => {
          const unit = shown.units.get(id);
          return (
            <li key={id} class={shown.fresh.has(id) ? "fresh" : ""}>
              <div class="row">
                <span class="place">{at + 1}</span>
                <span class="said words">
                  {unit?.excerpts.map((part) => `${part.speaker}: ${part.text}`).join(" ")}
                </span>
                <span class="facts">{unit && <span>{saidAt(unit.said_at)}</span>}</span>
              </div>
            </li>
          );
        })}
      </ol>
    </>
  );
}

/** Pieces of a snapshot follow one another; the first drops what was held. */
export function withSnapshot(before: Shown, from: number, units: SubscribedUnit[]): Shown {
  const held = from === 0 ? { units: new Map<string, SubscribedUnit>(), order: [] } : before;
  const all = new Map([...held.units, ...units.map((unit) => [unit.id, unit] as const)]);
  return { units: all, order: [...held.order, ...units.map((unit) => unit.id)], fresh: new Set() };
}

export function withDelta(before: Shown, delta: Delta): Shown {
  const units = new Map(before.units);
  const changed = [...delta.added, ...delta.updated];
  for (const { id } of delta.removed) units.delete(id);
  for (const { unit } of changed) units.set(unit.id, unit);
  const fresh = new Set(changed.map(({ unit }) => unit.id));
  return { units, order: delta.order, fresh };
}

function PutTurn() {
  const [speaker, setSpeaker] = useState("");
  const [text, setText] = useState("");
  const [said, setSaid] = useState("");
  const [failure, setFailure] = useState<Failure>();
  const put = async () => {
    setFailure(undefined);
    const turn = `console-${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`;
    try {
      const now = new Date().toISOString();
      const written = await post<{ reflected: boolean }>("turns", {
        turns: [
          {
            bank: bank.value,
            turn,
            speaker: speaker.trim(),
            text: text.trim(),
            time: now,
            session: `console-${now.slice(0, 10)}`,
          },
        ],
        wait_ms: 5000,
      });
      setText("");
      setSaid(written.reflected ? "Stored, and answers reflect it." : "Stored; answers will reflect it soon.");
    } catch (thrown) {
      setFailure(failureOf(thrown));
    }
  };
  return (
    <details class="put">
      <summary>Put a turn into {bank.value || "a bank"}</summary>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void put();
        }}
      >
        <label>
          Speaker
          <input
            value={speaker}
            required
            autocomplete="off"
            onInput={(event) => setSpeaker(event.currentTarget.value)}
          />
        </label>
        <label>
          Says
          <textarea value={text} required rows={3} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <button type="submit" disabled={!bank.value}>
          Put
        </button>
        <p role="status">{said}</p>
        {failure && <ProblemView failure={failure} />}
      </form>
    </details>
  );
}
