// The evidence as a list, the context as an agent gets it, and the answer as JSON.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Evidence, EvidenceUnit } from "../forms";
import { toTrace } from "../frame";
import { IS_REPORT } from "../mode";
import { place } from "../route";
import { saidAt, share } from "../words";
import { MEANINGS } from "./meanings";
import type { Ripple } from "./ripple";

/** On a narrow screen the picture follows the first of the evidence. */
export const NARROW = "(max-width: 759px)";
const FIRST = 5;

interface ListProps {
  answer: Evidence;
  ripple: Ripple;
  pointed: string | undefined;
  fresh?: Set<string> | undefined;
  onPoint: (id: string | undefined) => void;
  onOpen: (id: string) => void;
}

export function EvidenceList({ answer, ripple, pointed, fresh, onPoint, onOpen }: ListProps) {
  const places = new Map(answer.units.map((unit, at) => [unit.id, at + 1]));
  const { q, at, asof } = place.value.parameters;
  const [all, setAll] = useState(!matchMedia(NARROW).matches);
  const listed = all ? answer.units : answer.units.slice(0, FIRST);
  const missed = ripple.units
    .filter((unit) => unit.fate !== "evidence" && unit.fate !== "reached")
    .sort((a, b) => (b.share ?? 0) - (a.share ?? 0));
  return (
    <>
      <ol class="evidence">
        {listed.map((unit, at) => (
          <li key={unit.id} class={`${pointed === unit.id ? "pointed" : ""}${fresh?.has(unit.id) ? " fresh" : ""}`}>
            <button
              type="button"
              class="row"
              data-unit={unit.id}
              onClick={() => onOpen(unit.id)}
              onFocus={() => onPoint(unit.id)}
              onBlur={() => onPoint(undefined)}
              onPointerEnter={() => onPoint(unit.id)}
              onPointerLeave={() => onPoint(undefined)}
            >
              <span class="place">{at + 1}</span>
              <span class="said words">
                {unit.excerpts.map((excerpt) => (
                  <span key={`${excerpt.turn} ${excerpt.range?.start ?? ""}`}>
                    <b>{excerpt.speaker}</b> {excerpt.text}
                  </span>
                ))}
              </span>
              <span class="facts">
                <span>{saidAt(unit.excerpts[0]?.said_at ?? unit.said_at)}</span>
                {waysIn(unit, places).map((way) => (
                  <span
                    key={way.text}
                    class={way.kind}
                    title={way.text.startsWith("share") ? MEANINGS.share : undefined}
                  >
                    {way.text}
                  </span>
                ))}
                {unit.anchor && <span>anchor</span>}
                <span title={`${MEANINGS.rho} Here it is ${unit.rho}.`}>ρ {share(unit.rho)}</span>
              </span>
            </button>
          </li>
        ))}
      </ol>
      {listed.length < answer.units.length && (
        <button type="button" class="all" onClick={() => setAll(true)}>
          All {answer.units.length}
        </button>
      )}
      {missed.length > 0 && (
        <details class="missed">
          <summary>{missed.length} that were scored and not quoted</summary>
          <ul>
            {missed.map((unit) => (
              <li
                key={unit.id}
                class={pointed === unit.id ? "pointed" : ""}
                onPointerEnter={() => onPoint(unit.id)}
                onPointerLeave={() => onPoint(undefined)}
              >
                <p class="words">{unit.label}</p>
                <p class="facts">
                  {unit.saidAt && <span>{saidAt(unit.saidAt)}</span>}
                  <span>{unit.reason}</span>
                  {!IS_REPORT && (
                    <button
                      type="button"
                      class="link"
                      onClick={() =>
                        toTrace(
                          unit.turn === undefined ? { unit: unit.id, q, at, asof } : { turn: unit.turn, q, at, asof },
                        )
                      }
                    >
                      Why not?
                    </button>
                  )}
                </p>
              </li>
            ))}
          </ul>
        </details>
      )}
      {!IS_REPORT && (
        <p class="quiet">
          Is something missing?{" "}
          <button type="button" class="link" onClick={() => toTrace({ q, at, asof })}>
            Ask why a turn was not remembered
          </button>
        </p>
      )}
    </>
  );
}

/** How a unit was reached, in a few words each. */
export function waysIn(unit: EvidenceUnit, places: Map<string, number>): { kind: string; text: string }[] {
  return unit.provenance.map((way) => {
    if (way.reached_by === "familiar") {
      return { kind: "", text: way.share === undefined ? `familiar, number ${way.rank}` : `share ${share(way.share)}` };
    }
    if (way.reached_by === "first_hop") {
      const index = way.channel === "lexical" ? "words" : way.channel === "semantic" ? "meaning" : "cues";
      return { kind: "", text: `${index} ${way.rank}` };
    }
    const from = way.path[0] && places.get(way.path[0].from);
    const kind = way.channel === "semantic" ? "semantic" : "structural";
    const edges = way.hops === 1 ? `${kind} edge` : `${way.hops} ${kind} edges`;
    return { kind, text: `${edges}${from ? ` from ${from}` : ""}` };
  });
}

export function ContextView({ answer }: { answer: Evidence }) {
  return (
    <>
      <p class="quiet">What the agent gets, word for word.</p>
      <Copied text={answer.context} />
      <pre class="context words">{answer.context}</pre>
    </>
  );
}

export function JsonView({ answer }: { answer: Evidence }) {
  const text = JSON.stringify(answer, null, 2);
  return (
    <>
      <p class="quiet">The whole answer of POST /v1/ask, numbers as they were sent.</p>
      <Copied text={text} />
      <pre class="words">{text}</pre>
    </>
  );
}

/** A button that copies a text. */
export function Copied({ text, name = "Copy" }: { text: string; name?: string }) {
  const [said, setSaid] = useState<string>();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid("Copied");
    } catch {
      setSaid("The browser does not allow it");
    }
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setSaid(undefined), 2000);
  };
  return (
    <button type="button" class="copy" onClick={() => void copy()}>
      <span aria-live="polite">{said ?? name}</span>
    </button>
  );
}
