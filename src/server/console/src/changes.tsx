// What changed in a bank between two points of its past: the units and edges that came and went.
import { useEffect, useState } from "preact/hooks";
import type { Diff, GraphUnit, History, Step, Units } from "./forms";
import { ProblemView } from "./problem";
import { change, place } from "./route";
import { type Failure, failureOf, get, post } from "./service";
import { count, moment, plural, saidAt, share, short } from "./words";

/** Entries of a list before it is asked for as a whole. */
const SHOWN = 50;
/** Characters of a label, as the service cuts it. */
const LABEL = 80;
/** Units of one request. */
const MOST_ASKED = 200;

export function Changes({ name }: { name: string }) {
  const { from: asked, to } = place.value.parameters;
  const [history, setHistory] = useState<History>();
  const [diff, setDiff] = useState<Diff>();
  const [labels, setLabels] = useState<Map<string, string>>(new Map());
  const [failure, setFailure] = useState<Failure>();
  useEffect(() => {
    const stop = new AbortController();
    get<History>("history", { bank: name }, stop.signal).then(setHistory, (thrown) => setFailure(failureOf(thrown)));
    return () => stop.abort();
  }, [name]);
  const points = history?.points ?? [];
  const from = asked ?? points.at(-2)?.offset ?? points[0]?.offset;
  useEffect(() => {
    setFailure(undefined);
    setDiff(undefined);
    if (from === undefined) return;
    const stop = new AbortController();
    const compare = async () => {
      const diff = await get<Diff>("diff", { bank: name, from, to }, stop.signal);
      setLabels(labelsOf(diff));
      setDiff(diff);
      const ids = unnamed(diff).slice(0, MOST_ASKED);
      if (!ids.length) return;
      const { units } = await post<Units>("units", { bank: name, ids }, stop.signal);
      const others = units.map((unit) => [unit.id, short(unit.restatement, LABEL)] as const);
      setLabels((labels) => new Map([...labels, ...others]));
    };
    compare().catch((thrown) => setFailure(failureOf(thrown)));
    return () => stop.abort();
  }, [name, from, to]);
  const stops = points.map(({ offset, append_ms }): [string, string] => [
    offset,
    `${moment(append_ms)}, offset ${offset}`,
  ]);
  const at = stops.findIndex(([offset]) => offset === from);
  return (
    <section class="changes" aria-label="What changed">
      <h3>What changed</h3>
      {failure && <ProblemView failure={failure} />}
      {history && points.length === 0 && (
        <p class="empty">
          No point of the past is kept here: set <code>snapshot.directory</code> in the pipeline file.
        </p>
      )}
      {from !== undefined && points.length > 0 && (
        <div class="filters">
          <Stop name="From" value={from} stops={stops} choose={(from) => change({ from, to: undefined }, true)} />
          <Stop name="To" value={to} stops={stops.slice(at + 1)} now choose={(to) => change({ from, to }, true)} />
        </div>
      )}
      {diff && (
        <>
          <p class="verdict" role="status">
            {countsOf(diff).map((text) => (
              <span key={text}>{text}</span>
            ))}
          </p>
          <div class="both">
            <List name="Units" came={diff.units_added} went={diff.units_removed} show={(unit) => <Unit of={unit} />} />
            <List
              name="Edges"
              came={diff.edges_added}
              went={diff.edges_removed}
              show={(edge) => <Edge of={edge} labels={labels} />}
            />
          </div>
        </>
      )}
    </section>
  );
}

/** How many of each came and went, those that are not listed included. */
export function countsOf({
  units_added,
  units_removed,
  edges_added,
  edges_removed,
  skipped,
  forgotten,
}: Diff): string[] {
  const [unitsCame, unitsWent] = [
    units_added.length + skipped.units_added,
    units_removed.length + skipped.units_removed,
  ];
  const [edgesCame, edgesWent] = [
    edges_added.length + skipped.edges_added,
    edges_removed.length + skipped.edges_removed,
  ];
  const unlisted = Object.values(skipped).reduce((sum, more) => sum + more, 0);
  return [
    `units +${count(unitsCame)} −${count(unitsWent)}`,
    `edges +${count(edgesCame)} −${count(edgesWent)}`,
    ...(unlisted ? [`${plural(unlisted, "change")} not listed`] : []),
    ...(forgotten ? [`${plural(forgotten, "turn")} forgotten since, at neither point`] : []),
  ];
}

function labelsOf(diff: Diff): Map<string, string> {
  return new Map([...diff.units_removed, ...diff.units_added].map(({ id, label }) => [id, label]));
}

/** Units at the ends of edges that neither came nor went. */
export function unnamed(diff: Diff): string[] {
  const named = labelsOf(diff);
  const ends = [...diff.edges_added, ...diff.edges_removed].flatMap(({ from, to }) => [from, to]);
  return [...new Set(ends)].filter((id) => !named.has(id));
}

interface StopProps {
  name: string;
  value: string | undefined;
  stops: [string, string][];
  now?: boolean;
  choose: (offset: string | undefined) => void;
}

function Stop({ name, value, stops, now = false, choose }: StopProps) {
  const known = value === undefined || stops.some(([offset]) => offset === value);
  return (
    <label>
      {name}{" "}
      <select value={value ?? ""} onChange={(event) => choose(event.currentTarget.value || undefined)}>
        {!known && <option value={value}>{value}</option>}
        {stops.map(([offset, text]) => (
          <option key={offset} value={offset}>
            {text}
          </option>
        ))}
        {now && <option value="">now</option>}
      </select>
    </label>
  );
}

interface ListProps<T> {
  name: string;
  came: T[];
  went: T[];
  show: (entry: T) => preact.ComponentChildren;
}

function List<T>({ name, came, went, show }: ListProps<T>) {
  const [whole, setWhole] = useState(false);
  const all = [...went.map((entry) => ["−", entry] as const), ...came.map((entry) => ["+", entry] as const)];
  const shown = whole ? all : all.slice(0, SHOWN);
  return (
    <div>
      <h4>{name}</h4>
      <ol class="turn-list">
        {shown.map(([sign, entry], at) => (
          <li key={at}>
            <b class={sign === "+" ? "good" : "bad"}>
              {sign}
              <span class="unseen">{sign === "+" ? " came" : " went"}</span>
            </b>{" "}
            {show(entry)}
          </li>
        ))}
      </ol>
      {all.length === 0 && <p class="quiet">None came, none went.</p>}
      {shown.length < all.length && (
        <button type="button" onClick={() => setWhole(true)}>
          All {count(all.length)}
        </button>
      )}
    </div>
  );
}

function Unit({ of: { id, label, said_at } }: { of: GraphUnit }) {
  return (
    <>
      <span class="words">{label}</span>
      <small>
        {saidAt(said_at)} · unit <code>{id}</code>
      </small>
    </>
  );
}

function Edge({ of: { from, to, channel, weight }, labels }: { of: Step; labels: Map<string, string> }) {
  return (
    <>
      <span class="words">
        {labels.get(from) ?? from} <span class="quiet">and</span> {labels.get(to) ?? to}
      </span>
      <small>
        {channel} · weight <span title={String(weight)}>{share(weight)}</span>
      </small>
    </>
  );
}
