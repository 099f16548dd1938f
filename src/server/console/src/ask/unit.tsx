// A unit of the ripple: its turns, how it was reached, its terms, its edges.
import { useEffect, useRef, useState } from "preact/hooks";
import type { EdgeView, Evidence, FamiliarityTerms, UnitView } from "../forms";
import { toTrace } from "../frame";
import { IS_REPORT } from "../mode";
import { ProblemView } from "../problem";
import { change, place } from "../route";
import { type Failure, failureOf, get } from "../service";
import { bank } from "../session";
import { plural, saidAt, share, short } from "../words";
import { MEANINGS, TERM_MEANINGS, TERMS, type Term } from "./meanings";
import { type Ripple, waysOf } from "./ripple";

/** On a screen this narrow the drawer covers everything, so it takes the focus. */
const NARROW = "(max-width: 759px)";

interface Props {
  id: string;
  answer: Evidence;
  ripple: Ripple;
  close: () => void;
}

export function UnitDrawer({ id, answer, ripple, close }: Props) {
  const [view, setView] = useState<UnitView>();
  const [failure, setFailure] = useState<Failure>();
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const { q, at, asof } = place.value.parameters;
  useEffect(() => {
    setView(undefined);
    setFailure(undefined);
    heading.current?.focus();
    // A report has the answer alone.
    if (IS_REPORT) return;
    const stop = new AbortController();
    get<UnitView>("units", { bank: bank.value, id }, stop.signal).then(setView, (thrown) =>
      setFailure(failureOf(thrown)),
    );
    return () => stop.abort();
  }, [id]);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    if (matchMedia(NARROW).matches) dialog.current?.showModal();
    else dialog.current?.show();
    heading.current?.focus();
    const pressed = (event: KeyboardEvent) => {
      if (event.key === "Escape") close();
    };
    addEventListener("keydown", pressed);
    return () => {
      removeEventListener("keydown", pressed);
      const row = document.querySelector<HTMLElement>(`.row[data-unit="${CSS.escape(id)}"]`);
      (row ?? before)?.focus();
    };
  }, []);
  const found = ripple.units.find((unit) => unit.id === id);
  const evidence = answer.units.find((unit) => unit.id === id);
  const seen = answer.trace.first_hop.filter((seen) => seen.id === id).map((seen) => seen.provenance);
  const ways = evidence?.provenance ?? seen;
  const placeOf = (other: string) => {
    const unit = ripple.units.find((unit) => unit.id === other);
    return unit?.place === undefined ? `“${short(unit?.label ?? other, 40)}”` : `evidence ${unit.place}`;
  };
  const terms =
    ways.find((way) => way.reached_by === "familiar")?.terms ??
    answer.trace.near?.find((near) => near.id === id)?.terms;
  const quoted = new Set(evidence?.excerpts.map((excerpt) => excerpt.turn));
  const inside = (edge: EdgeView) => ripple.units.some((unit) => unit.id === edge.unit.id);
  return (
    <dialog ref={dialog} class="drawer" aria-labelledby="unit" onCancel={close}>
      <div class="head">
        <h2 id="unit" tabIndex={-1} ref={heading}>
          {evidence ? `Evidence ${found?.place}` : found?.fate === "reached" ? "Only reached" : "Not quoted"}
        </h2>
        <button type="button" onClick={close}>
          Close
        </button>
      </div>
      {failure && <ProblemView failure={failure} />}
      {view ? (
        <ul class="turns words">
          {view.unit.parts.map((part) => (
            <li key={`${part.turn} ${part.range?.start ?? ""}`} class={quoted.has(part.turn) ? "quoted" : ""}>
              <p>
                <b>{part.speaker}</b> {part.text}
              </p>
              <small>
                {saidAt(part.said_at)} · turn {part.turn}
                {quoted.has(part.turn) ? " · quoted" : ""}
              </small>
            </li>
          ))}
        </ul>
      ) : IS_REPORT && evidence ? (
        <ul class="turns words">
          {evidence.excerpts.map((excerpt) => (
            <li key={`${excerpt.turn} ${excerpt.range?.start ?? ""}`} class="quoted">
              <p>
                <b>{excerpt.speaker}</b> {excerpt.text}
              </p>
              <small>
                {saidAt(excerpt.said_at)} · turn {excerpt.turn} · quoted
              </small>
            </li>
          ))}
        </ul>
      ) : (
        !failure && <p class="words">{found?.label}</p>
      )}
      <h3>How it was reached</h3>
      <ul class="plain">
        {waysOf(ways, ripple.cutoff, placeOf).map((way) => (
          <li key={way}>{way}</li>
        ))}
        {found?.reason && <li>{found.reason}</li>}
        {evidence && (
          <li title={MEANINGS.rho}>
            Order in the evidence ρ {share(evidence.rho)}
            {evidence.anchor ? "; the walk began here" : ""}
          </li>
        )}
      </ul>
      {!evidence && !IS_REPORT && (
        <button type="button" onClick={() => toTrace({ unit: id, q, at, asof })}>
          Why was it not quoted?
        </button>
      )}
      {terms && (
        <>
          <h3>What its score is made of</h3>
          <TermBars terms={terms} />
        </>
      )}
      {view && (
        <>
          <h3>Cues</h3>
          <p>
            {[
              view.unit.cues.participants.length && `people ${view.unit.cues.participants.join(", ")}`,
              view.unit.cues.locations.length && `places ${view.unit.cues.locations.join(", ")}`,
              `session ${view.unit.session}`,
            ]
              .filter(Boolean)
              .join(" · ")}
          </p>
          <h3>
            {plural(view.edges.length, "edge")}
            {asof ? ", as of now" : ""}
          </h3>
          <ul class="edges">
            {view.edges.map((edge) => (
              <li key={`${edge.channel} ${edge.unit.id}`}>
                <button
                  type="button"
                  class="link words"
                  disabled={!inside(edge)}
                  onClick={() => change({ unit: edge.unit.id }, true)}
                >
                  {short(edge.unit.restatement, 90)}
                </button>
                <small>
                  <b class={edge.channel === "semantic" ? "semantic" : "structural"}>
                    {edge.channel} {share(edge.weight)}
                  </b>
                  {reasons(edge) && ` · ${reasons(edge)}`}
                  {inside(edge) ? "" : " · not in this ripple"}
                </small>
              </li>
            ))}
          </ul>
        </>
      )}
      <p class="quiet">
        Unit <code>{id}</code>
      </p>
    </dialog>
  );
}

function reasons(edge: EdgeView): string {
  const { participants = [], locations = [], apart_ms } = edge.reasons;
  const apart = apart_ms === undefined || apart_ms === null ? "" : apart_ms === 0 ? "same time" : apartWords(apart_ms);
  return [participants.join(", "), locations.join(", "), apart].filter(Boolean).join(" · ");
}

function apartWords(milliseconds: number): string {
  const hours = milliseconds / 3_600_000;
  return hours < 1
    ? `${Math.round(hours * 60)} min apart`
    : hours < 48
      ? `${Math.round(hours)} h apart`
      : `${Math.round(hours / 24)} days apart`;
}

/** The terms that a score has: only a reranker's may be absent. */
function termsOf(terms: FamiliarityTerms): [Term, number][] {
  const all = TERMS.map((term): [Term, number | undefined] => [term, terms[term]]);
  return all.filter((one): one is [Term, number] => one[1] !== undefined);
}

/** The terms of a score, each as a bar on one scale, and as a number. */
export function TermBars({ terms }: { terms: FamiliarityTerms }) {
  const shown = termsOf(terms);
  const most = Math.max(0.001, ...shown.map(([, value]) => Math.abs(value)));
  return (
    <table class="terms">
      <tbody>
        {shown.map(([term, value]) => (
          <tr key={term} title={TERM_MEANINGS[term]}>
            <th scope="row">{term}</th>
            <td>
              <i class={value < 0 ? "bar less" : "bar"} style={{ width: `${(100 * Math.abs(value)) / most}%` }} />
            </td>
            <td class="number" title={String(value)}>
              {share(value)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
