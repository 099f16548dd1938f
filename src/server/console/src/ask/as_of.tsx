// As of: the points of the past that answer. A point is the end of a read, so there are stops and nothing between.
import { useEffect, useRef } from "preact/hooks";
import { useEdited } from "../edited";
import type { History } from "../forms";
import { isTyping } from "../frame";
import { change, hashOf } from "../route";
import { hasLetterKeys } from "../session";
import { moment } from "../words";

export function AsOf({ history, asof }: { history: History; asof: string | undefined }) {
  const { points } = history;
  const now = points.length;
  const chosen =
    asof === undefined
      ? now
      : Math.max(
          0,
          points.findIndex((point) => point.offset === asof),
        );
  const [at, setAt] = useEdited(chosen);
  const settle = (at: number) => change({ asof: points[at]?.offset });
  const keys = useRef({ chosen, settle });
  keys.current = { chosen, settle };
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (!hasLetterKeys.value || isTyping(event)) return;
      const { chosen, settle } = keys.current;
      if (event.key === "[") settle(Math.max(0, chosen - 1));
      else if (event.key === "]") settle(Math.min(now, chosen + 1));
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [now]);
  const point = points[at];
  const text = point ? `${moment(point.append_ms)}, offset ${point.offset}` : "now";
  return (
    <div class="as-of">
      <label>
        <span>As of</span>
        <input
          type="range"
          min={0}
          max={now}
          value={at}
          list="points"
          aria-valuetext={text}
          onInput={(event) => setAt(Number(event.currentTarget.value))}
          onChange={(event) => settle(Number(event.currentTarget.value))}
        />
      </label>
      <datalist id="points">
        {points.map((point, at) => (
          <option key={point.offset} value={at} />
        ))}
        <option value={now} />
      </datalist>
      <output>{text}</output>
      {point && <a href={hashOf("banks", { bank: history.bank, from: point.offset })}>What changed since</a>}
      {history.more > 0 && <small class="quiet">{history.more} older points are not listed.</small>}
    </div>
  );
}
