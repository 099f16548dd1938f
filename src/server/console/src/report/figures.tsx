// The figures of a report: recall against tokens, and by category before and after the graph. Each picture stands
// beside a table that says the same.
import { useEffect, useRef, useState } from "preact/hooks";
import { count, plural } from "../words";
import type { CategoryFigures, Mean, ReportFigures, Retriever } from "./forms";

const percent = (share: number): string => (100 * share).toFixed(1);
const shown = (mean: Mean | null | undefined): string => (mean ? percent(mean.mean) : "–");
const range = (mean: Mean | null | undefined): string | undefined =>
  mean?.low === undefined || mean.low === null || mean.high === undefined || mean.high === null
    ? undefined
    : `${percent(mean.low)} to ${percent(mean.high)}`;

/** A share in percent, with its interval. */
function Share({ of }: { of: Mean | null | undefined }) {
  const between = range(of);
  return (
    <>
      {shown(of)}
      {between && (
        <small>
          <span class="unseen">, 95 % between </span>
          {between}
        </small>
      )}
    </>
  );
}

/** The width of an element, which is followed. */
function useWidth() {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return { box, width };
}

/** With more retrievers a number at each mark would hide the marks; then ours alone have one. */
const MOST_NUMBERS = 12;
/** Retrievers that the table has at once. */
const MOST_ROWS = 8;
const HEIGHT = 300;
const [LEFT, RIGHT, TOP, BOTTOM] = [44, 26, 24, 40];

export function RecallAgainstTokens({ retrievers }: { retrievers: Retriever[] }) {
  const { box, width } = useWidth();
  if (!retrievers.length) return null;
  const tokens = retrievers.map((retriever) => Math.max(1, retriever.tokens));
  const [least, most] = [Math.min(...tokens) / 1.15, Math.max(...tokens) * 1.15];
  const lows = retrievers.map(({ recall }) => recall.low ?? recall.mean);
  const floor = Math.max(0, Math.floor(10 * Math.min(...lows) - 0.2) / 10);
  const x = (value: number) =>
    LEFT +
    ((Math.log(Math.max(1, value)) - Math.log(least)) / (Math.log(most) - Math.log(least))) * (width - LEFT - RIGHT);
  const y = (share: number) => TOP + ((1 - share) / (1 - floor || 1)) * (HEIGHT - TOP - BOTTOM);
  const marks = Array.from({ length: 11 }, (_, i) => i / 10).filter((share) => share >= floor - 1e-9);
  const ours = retrievers.filter(({ kind }) => kind === "recollection" || kind === "first_hop");
  const hasMany = retrievers.length > MOST_ROWS;
  return (
    <section aria-labelledby="against-tokens">
      <h2 id="against-tokens">Recall against tokens</h2>
      <div ref={box} class="plot">
        {width > 0 && (
          <svg
            width={width}
            height={HEIGHT}
            role="img"
            aria-label="Recall against tokens; the table below has its points"
          >
            {marks.map((share) => (
              <g key={share} class="grid">
                <line x1={LEFT} x2={width - RIGHT} y1={y(share)} y2={y(share)} />
                <text x={LEFT - 8} y={y(share) + 4} text-anchor="end">
                  {Math.round(100 * share)}
                </text>
              </g>
            ))}
            {ticks(least, most, width < 500 ? 3 : 6).map((value) => (
              <text key={value} class="tick" x={x(value)} y={HEIGHT - BOTTOM + 18} text-anchor="middle">
                {count(value)}
              </text>
            ))}
            <text class="tick" x={(LEFT + width - RIGHT) / 2} y={HEIGHT - 4} text-anchor="middle">
              mean tokens of a context, logarithmic
            </text>
            {ours.length === 2 && (
              <polyline class="path" points={ours.map((one) => `${x(one.tokens)},${y(one.recall.mean)}`).join(" ")} />
            )}
            {/* Ours are drawn last, on top of the others. */}
            {[...retrievers.entries()].reverse().map(([at, retriever]) => (
              <g key={retriever.name} class={`mark ${retriever.kind}`}>
                <title>{`${retriever.name}: ${shown(retriever.recall)} % at ${count(Math.round(retriever.tokens))}`}</title>
                <Whisker x={x(retriever.tokens)} of={retriever.recall} y={y} />
                <Shape kind={retriever.kind} x={x(retriever.tokens)} y={y(retriever.recall.mean)} />
                {(retrievers.length <= MOST_NUMBERS || ours.includes(retriever)) && (
                  <text x={x(retriever.tokens) + 10} y={y(retriever.recall.mean) - 6}>
                    {at + 1}
                  </text>
                )}
              </g>
            ))}
          </svg>
        )}
      </div>
      <Retrievers retrievers={retrievers.slice(0, hasMany ? ours.length : undefined)} first={1} />
      {hasMany && (
        <details class="missed">
          <summary>{plural(retrievers.length - ours.length, "other")}</summary>
          <Retrievers retrievers={retrievers.slice(ours.length)} first={ours.length + 1} />
        </details>
      )}
    </section>
  );
}

/** The points of the picture as a table; `first` is the number of its first row. */
function Retrievers({ retrievers, first }: { retrievers: Retriever[]; first: number }) {
  return (
    <table class="figures">
      <thead>
        <tr>
          <th scope="col">
            <span class="unseen">Number in the picture</span>
          </th>
          <th scope="col">Retriever</th>
          <th scope="col" class="number">
            Recall, %
          </th>
          <th scope="col" class="number">
            Tokens
          </th>
        </tr>
      </thead>
      <tbody>
        {retrievers.map((retriever, at) => (
          <tr key={retriever.name}>
            <td class="number">{first + at}</td>
            <th scope="row">
              <svg width="16" height="16" class={`mark ${retriever.kind}`} aria-hidden="true">
                <Shape kind={retriever.kind} x={8} y={8} />
              </svg>{" "}
              {retriever.name}
              {retriever.kind === "ablation" && <span class="quiet"> left out</span>}
            </th>
            <td class="number">
              <Share of={retriever.recall} />
            </td>
            <td class="number">{count(Math.round(retriever.tokens))}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Round numbers between two. */
function ticks(least: number, most: number, about: number): number[] {
  const all = [1, 2, 3, 5, 7].flatMap((first) => [1, 10, 100, 1000, 10_000, 100_000].map((power) => first * power));
  const inside = all.filter((value) => value > least && value < most).sort((a, b) => a - b);
  const every = Math.ceil(inside.length / about);
  const kept = inside.filter((_, at) => at % every === 0);
  return kept.length ? kept : [Math.round(Math.sqrt(least * most))];
}

function Whisker({ x, of, y }: { x: number; of: Mean; y: (share: number) => number }) {
  if (!range(of)) return null;
  return <line class="whisker" x1={x} x2={x} y1={y(of.low ?? 0)} y2={y(of.high ?? 0)} />;
}

/** Kinds differ in form, not in colour alone. */
function Shape({ kind, x, y }: { kind: Retriever["kind"]; x: number; y: number }) {
  if (kind === "baseline") return <rect x={x - 4.5} y={y - 4.5} width="9" height="9" />;
  if (kind === "ablation") return <path d={`M${x} ${y - 6}l6 6l-6 6l-6 -6z`} />;
  return <circle cx={x} cy={y} r="5.5" />;
}

export function ByCategory({ report }: { report: ReportFigures }) {
  const rows = [report.overall, ...report.categories];
  const hasFacts = rows.some((row) => row.recollection.facts);
  const hasFirstHop = rows.some((row) => row.first_hop.recall);
  const lows = rows
    .flatMap((row) => [row.recollection.recall, row.first_hop.recall])
    .flatMap((mean) => (mean ? [mean.low ?? mean.mean] : []));
  const floor = Math.max(0, Math.floor(10 * Math.min(0.9, ...lows)) / 10);
  return (
    <section aria-labelledby="by-category">
      <h2 id="by-category">By category, before and after the graph</h2>
      <p class="quiet">
        Recall, in percent from {Math.round(100 * floor)} to 100: hollow is the first hop alone, filled the whole
        recollection, the line the middle 95 % of resamples. “All found” is the share of questions with all of their
        evidence.
        {!hasFirstHop && " The first hop alone is not measured on this benchmark."}
      </p>
      <table class="figures categories">
        <thead>
          <tr>
            <th scope="col">Category</th>
            <th scope="col" class="number extra">
              Questions
            </th>
            {hasFirstHop && (
              <th scope="col" class="number">
                First hop
              </th>
            )}
            <th scope="col" class="number">
              Recollection
            </th>
            <td class="dumbbell" />
            {hasFacts && (
              <th scope="col" class="number">
                Facts
              </th>
            )}
            <th scope="col" class="number extra">
              All found
            </th>
            <th scope="col" class="number extra">
              Tokens
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name} class={row === report.overall ? "sum" : ""}>
              <th scope="row">{row.name}</th>
              <td class="number extra">{count(row.questions)}</td>
              {hasFirstHop && (
                <td class="number">
                  <Share of={row.first_hop.recall} />
                </td>
              )}
              <td class="number">
                <Share of={row.recollection.recall} />
              </td>
              <td class="dumbbell">
                <Dumbbell row={row} floor={floor} />
              </td>
              {hasFacts && (
                <td class="number">
                  <Share of={row.recollection.facts} />
                </td>
              )}
              <td class="number extra">
                {hasFirstHop && `${shown(row.first_hop.full)} → `}
                {shown(row.recollection.full)}
              </td>
              <td class="number extra">{row.recollection.tokens ? count(Math.round(row.recollection.tokens)) : "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Recall of the first hop and of the whole recollection on one line. */
function Dumbbell({ row, floor }: { row: CategoryFigures; floor: number }) {
  const x = (share: number) => 8 + (144 * (Math.max(floor, share) - floor)) / (1 - floor || 1);
  const stages = [
    ["first_hop", row.first_hop.recall, 9],
    ["recollection", row.recollection.recall, 19],
  ] as const;
  return (
    <svg width="160" height="28" viewBox="0 0 160 28" aria-hidden="true">
      <line class="axis" x1="8" x2="152" y1="14" y2="14" />
      {stages.map(
        ([kind, mean, y]) =>
          mean && (
            <g key={kind} class={`mark ${kind}`}>
              {range(mean) && <line class="whisker" x1={x(mean.low ?? 0)} x2={x(mean.high ?? 0)} y1={y} y2={y} />}
              <circle cx={x(mean.mean)} cy={y} r="4.5" />
            </g>
          ),
      )}
    </svg>
  );
}
