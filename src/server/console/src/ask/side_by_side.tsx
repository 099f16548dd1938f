// Side by side: the recollection, and what a ranking without the graph quotes within the same tokens.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Evidence } from "../forms";
import { ProblemView } from "../problem";
import { type Failure, failureOf, post } from "../service";
import { saidAt, share } from "../words";
import { type ComparedUnit, comparisonOf, RANKINGS, type Ranking } from "./compare";
import { NARROW, waysIn } from "./evidence";

interface Props {
  answer: Evidence;
  asof: string | undefined;
  pointed: string | undefined;
  onPoint: (id: string | undefined) => void;
  onOpen: (id: string) => void;
}

export function SideBySide({ answer, asof, pointed, onPoint, onOpen }: Props) {
  const [compared, setCompared] = useState<Evidence>();
  const [failure, setFailure] = useState<Failure>();
  const [ranking, setRanking] = useState<Ranking>("meaning");
  const narrow = useIsNarrow();
  useEffect(() => {
    setFailure(undefined);
    const stop = new AbortController();
    const { bank, text, asked_at } = answer.question;
    // Both lists are of one answer: the memory may have changed since the other one.
    post<Evidence>("ask", { bank, text, asked_at, as_of: asof, compare: true }, stop.signal).then(
      setCompared,
      (thrown) => setFailure(failureOf(thrown)),
    );
    return () => stop.abort();
  }, [answer]);
  const comparison = useMemo(() => compared && comparisonOf(compared, ranking), [compared, ranking]);
  if (failure) return <ProblemView failure={failure} />;
  if (!compared || !comparison) return <p role="status">Comparing …</p>;

  const places = new Map(compared.units.map((unit, at) => [unit.id, at + 1]));
  const ways = (id: string) => {
    const unit = compared.units.find((unit) => unit.id === id);
    return unit ? waysIn(unit, places) : [];
  };
  const list = (units: ComparedUnit[], name: string, side?: "flat" | "recollection") => (
    <ol class={`evidence compared${side ? "" : " merged"}`} aria-label={name}>
      {units.map((unit) => {
        const { id, flat, recollection } = unit;
        const only = flat === undefined ? "only-recollection" : recollection === undefined ? "only-flat" : "";
        return (
          <li key={id} class={`${only}${pointed === id ? " pointed" : ""}`}>
            <button
              type="button"
              class="row"
              data-unit={id}
              onClick={() => onOpen(id)}
              onFocus={() => onPoint(id)}
              onBlur={() => onPoint(undefined)}
              onPointerEnter={() => onPoint(id)}
              onPointerLeave={() => onPoint(undefined)}
            >
              <span class="place">{side ? unit[side] : <Badges flat={flat} recollection={recollection} />}</span>
              <span class="said words">
                <span>{unit.label}</span>
              </span>
              <span class="facts">
                <span>{saidAt(unit.saidAt)}</span>
                {side === "flat" && recollection !== undefined && <span>recollection {recollection}</span>}
                {side === "recollection" && flat !== undefined && <span>flat {flat}</span>}
                {side !== "recollection" && unit.score !== undefined && <span>score {share(unit.score)}</span>}
                {side !== "recollection" && recollection === undefined && <span>only flat</span>}
                {side !== "flat" && flat === undefined && <span>only recollection</span>}
                {side !== "flat" &&
                  flat === undefined &&
                  ways(id).map((way) => (
                    <span key={way.text} class={way.kind}>
                      {way.text}
                    </span>
                  ))}
              </span>
            </button>
          </li>
        );
      })}
    </ol>
  );
  return (
    <>
      <fieldset class="rankings">
        <legend>Flat, without the graph, by</legend>
        {(Object.keys(RANKINGS) as Ranking[]).map((name) => (
          <label key={name}>
            <input type="radio" name="ranking" checked={ranking === name} onChange={() => setRanking(name)} />
            {RANKINGS[name]}
          </label>
        ))}
      </fieldset>
      <p class="counts" aria-live="polite">
        {comparison.sentence}
      </p>
      {narrow ? (
        <>
          <p class="quiet">F: its place in the flat ranking. R: its place in the recollection.</p>
          {list(comparison.merged, "Flat and recollection")}
        </>
      ) : (
        <div class="beside">
          <section>
            <h3>Flat</h3>
            {list(comparison.flat, "Flat", "flat")}
          </section>
          <section>
            <h3>Recollection</h3>
            {list(comparison.recollection, "Recollection", "recollection")}
          </section>
        </div>
      )}
    </>
  );
}

function Badges({ flat, recollection }: { flat?: number | undefined; recollection?: number | undefined }) {
  return (
    <>
      {flat !== undefined && <span class="badge">F {flat} </span>}
      {recollection !== undefined && <span class="badge">R {recollection}</span>}
    </>
  );
}

/** Whether the screen is narrow now. */
function useIsNarrow(): boolean {
  const [narrow, setNarrow] = useState(matchMedia(NARROW).matches);
  useEffect(() => {
    const query = matchMedia(NARROW);
    const changed = () => setNarrow(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  return narrow;
}
