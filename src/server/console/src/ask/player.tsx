// The ripple with its steps: played, or gone through by key and slider.
//
// In: a ripple and where its units stand. Out: the picture at a step, the step's sentence for those who do not see it,
// and what its marks mean.
import { useEffect, useRef, useState } from "preact/hooks";
import { isTyping } from "../frame";
import { hasLetterKeys } from "../session";
import { count } from "../words";
import type { Layout } from "./layout";
import { Picture, type Ringed } from "./picture";
import type { Ripple, RippleUnit } from "./ripple";

/** Time of one step while it plays. */
const STEP_MILLISECONDS = 620;

interface Props {
  ripple: Ripple;
  layout: Layout;
  /** Whether a new ripple plays itself once; else it begins at its end. */
  plays: boolean;
  pointed?: string | undefined;
  fresh?: Set<string> | undefined;
  gone?: RippleUnit[] | undefined;
  ringed?: Ringed | undefined;
  onPoint: (id: string | undefined) => void;
  onOpen: (id: string) => void;
}

export function Player({ ripple, layout, plays: begins, pointed, fresh, gone, ringed, onPoint, onOpen }: Props) {
  const last = ripple.steps.length - 1;
  const [step, setStep] = useState(begins ? 0 : last);
  const [plays, setPlays] = useState(begins);
  const [moves, setMoves] = useState(begins);
  const shown = Math.min(step, last);

  useEffect(() => {
    setStep(begins ? 0 : last);
    setMoves(begins);
    if (begins) setPlays(true);
  }, [ripple]);
  useEffect(() => {
    if (!plays) return;
    if (shown >= last) {
      setPlays(false);
      return;
    }
    const timer = setTimeout(() => setStep(shown + 1), STEP_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [plays, shown, last]);
  const play = () => {
    setMoves(true);
    if (plays) setPlays(false);
    else {
      if (shown >= last) setStep(0);
      setPlays(true);
    }
  };
  const toStep = (step: number) => {
    setPlays(false);
    setMoves(step > shown);
    setStep(Math.max(0, Math.min(last, step)));
  };
  const keys = useRef({ play, toStep, shown });
  keys.current = { play, toStep, shown };
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement | null;
      if (isTyping(event) || target?.matches("input, [role=tab], dialog *")) return;
      const { play, toStep, shown } = keys.current;
      if (event.key === " " && !target?.matches("button, a, summary")) play();
      else if (event.key === "ArrowRight") toStep(shown + 1);
      else if (event.key === "ArrowLeft") toStep(shown - 1);
      else if (hasLetterKeys.value && (event.key === "j" || event.key === "k")) moveFocus(event.key === "j" ? 1 : -1);
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  return (
    <>
      <Picture
        ripple={ripple}
        layout={layout}
        step={shown}
        moves={moves}
        pointed={pointed}
        fresh={fresh}
        gone={gone}
        ringed={ringed}
        onPoint={onPoint}
        onOpen={onOpen}
      />
      <div class="transport">
        <button type="button" onClick={play} aria-label={plays ? "Pause" : "Play the ripple"}>
          {plays ? "❚❚" : "▶"}
        </button>
        <input
          type="range"
          aria-label="Step"
          min={0}
          max={last}
          value={shown}
          aria-valuetext={ripple.steps[shown]?.name}
          onInput={(event) => toStep(Number(event.currentTarget.value))}
        />
        <span class="step">{ripple.steps[shown]?.name}</span>
      </div>
      <p class="sentence words" aria-live="polite" data-step={shown}>
        {ripple.steps[shown]?.sentence}
      </p>
      <Legend ripple={ripple} ringed={ringed} />
    </>
  );
}

/** Moves the focus along the evidence. */
function moveFocus(by: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>(".evidence .row")];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  rows[at < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, at + by))]?.focus();
}

function Legend({ ripple, ringed }: { ripple: Ripple; ringed?: Ringed | undefined }) {
  const has = (fate: string) => ripple.units.some((unit) => unit.fate === fate);
  const rings = (outcome: string) => [...(ringed?.values() ?? [])].includes(outcome as "found" | "lost");
  const line = (kind: string, text: string) =>
    ripple.edges.some((edge) => edge.channel === kind) && (
      <li>
        <svg width="26" height="8" aria-hidden="true">
          <line x1="0" y1="4" x2="26" y2="4" class={kind} />
        </svg>
        {text}
      </li>
    );
  return (
    <ul class="legend" aria-label="Legend">
      {rings("found") && (
        <li>
          <i class="dot expected found" /> expected, and found
        </li>
      )}
      {rings("lost") && (
        <li>
          <i class="dot expected lost" /> expected, and lost
        </li>
      )}
      <li>
        <i class="dot" /> evidence, nearer is more familiar
      </li>
      {ripple.units.some((unit) => unit.anchor) && (
        <li>
          <i class="dot ring" /> anchor of the walk
        </li>
      )}
      {(has("near") || has("considered")) && (
        <li>
          <i class="dot hollow" /> scored, not quoted
        </li>
      )}
      {has("reached") && (
        <li>
          <i class="dot small" /> {count(ripple.units.filter((unit) => unit.fate === "reached").length)} only reached
        </li>
      )}
      {line("semantic", "semantic edge")}
      {line("structural", "structural edge")}
      <li>clockwise from the top: when it was said</li>
    </ul>
  );
}
