// A line of what was sampled over time: axes with their units, and the value under the pointer. uPlot draws it.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { lookOf } from "./ask/look";
import { useSizeAndLook } from "./canvas";
import { count } from "./words";

const HEIGHT = 110;
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const time = (seconds: number): string => clock.format(seconds * 1000);

/** Two digits of what is small; no more than a person compares. */
export const rounded = (number: number): string =>
  count(number < 10 ? Math.round(number * 10) / 10 : Math.round(number));

/** From the first moment to the last, and a minute at least. */
function rangeOf(moments: ArrayLike<number>): [number, number] {
  const last = moments[moments.length - 1] ?? 0;
  return [Math.min(moments[0] ?? last, last - 60), last];
}

interface LineProps {
  name: string;
  /** Of the values, such as `ms`; empty where they are a number of something. */
  unit?: string;
  /** When each value was sampled, in seconds since 1970. */
  at: number[];
  /** What is unknown is left out. */
  values: (number | undefined)[];
}

export function Line({ name, unit = "", at, values }: LineProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const [pointed, setPointed] = useState<number>();
  const {
    size: { width },
    look,
  } = useSizeAndLook(box);
  const data: uPlot.AlignedData = [at, values.map((value) => value ?? null)];
  const newest = useRef(data);
  newest.current = data;
  useEffect(() => {
    const element = box.current;
    if (!element || !width) return;
    const colours = lookOf(element);
    const axis = { stroke: colours.quiet, grid: { stroke: colours.line, width: 1 }, ticks: { show: false }, gap: 4 };
    const options: uPlot.Options = {
      width,
      height: HEIGHT,
      legend: { show: false },
      // The pointer stands at the same moment in every line of the page.
      cursor: { sync: { key: "samples" }, drag: { x: false, y: false }, y: false },
      scales: {
        x: { range: ({ data: [moments] }) => rangeOf(moments) },
        y: { range: (_, _least, most) => [0, Math.max(1, most * 1.1)] },
      },
      series: [{}, { stroke: colours.semantic, width: 1.5 }],
      axes: [
        { ...axis, size: 24, space: 90, values: (plot, moments) => (plot.data[0].length ? moments.map(time) : []) },
        { ...axis, size: 52, space: 30, values: (_, marks) => marks.map(rounded) },
      ],
      hooks: { setCursor: [({ cursor }) => setPointed(cursor.idx ?? undefined)] },
    };
    const drawn = new uPlot(options, newest.current, element);
    plot.current = drawn;
    return () => {
      plot.current = undefined;
      drawn.destroy();
    };
  }, [width, look]);
  useEffect(() => plot.current?.setData(data), [at.length, at[0], at.at(-1)]);
  const known = values.filter((value) => value !== undefined);
  const said = (value: number | undefined) =>
    value === undefined ? "none" : unit ? `${rounded(value)} ${unit}` : rounded(value);
  const moment = pointed === undefined ? undefined : at[pointed];
  return (
    <figure class="line">
      <figcaption>
        {name} <b>{said(values.at(-1))}</b>{" "}
        <small>
          {moment !== undefined && pointed !== undefined
            ? `${time(moment)}: ${said(values[pointed])}`
            : known.length > 0 && `most ${said(Math.max(...known))}`}
        </small>
      </figcaption>
      <div ref={box} role="img" aria-label={`${name}: now ${said(values.at(-1))}`} />
    </figure>
  );
}
