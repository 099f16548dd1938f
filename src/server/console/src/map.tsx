// A bank as a map: its sessions in the order of time, like words on lines.
//
// In: a bank. Out: a canvas, and a list that says the same. The map is drawn once into a layer (`data-drawn` counts);
// panning, zooming and pointing only copy it. Places are those of the order in time, so that nothing lies on another.
import { quadtree } from "d3-quadtree";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { lookOf } from "./ask/look";
import { copyLayer, Tip, usePanZoom, useSizeAndLook, ZoomButtons } from "./canvas";
import type { Graph } from "./forms";
import { ProblemView } from "./problem";
import { type Failure, failureOf, get } from "./service";
import { count, dayOf, plural, saidAt } from "./words";

/** Longest side of the layer, in its own pixels; it is drawn larger than it is shown, for who zooms in. */
const MOST_PIXELS = 4096;
const LAYER_SCALE = 2;
const MARGIN = { left: 88, right: 12, top: 12, bottom: 12 };
/** Most lines that name their day. */
const TICKS = 8;
/** How many times as wide as high a map is. */
const SHAPE = 2;
/** With more edges each is drawn fainter. */
const MANY_EDGES = 1000;
/** How many more of the list are shown at a time. */
const LISTED = 100;

type Unit = Graph["units"][number];

interface Spot {
  unit: Unit;
  x: number;
  y: number;
}

interface Tick {
  x: number;
  y: number;
  label: string;
}

/**
 * Places from 0 to 1, and the days of some lines. Units stand in the order of time within their session, sessions in the
 * order of their first, on lines like words: a session that does not fit begins the next line, a longer one goes on
 * there. So the picture is filled, whether there is one session or a thousand.
 */
export function mapOf(units: Unit[], shape = SHAPE): { spots: Spot[]; ticks: Tick[] } {
  const sorted = [...units].sort(
    (a, b) => Date.parse(a.said_at) - Date.parse(b.said_at) || (a.id < b.id ? -1 : Number(a.id > b.id)),
  );
  const sessions = new Map<string, Unit[]>();
  for (const unit of sorted) {
    const same = sessions.get(unit.session);
    if (same) same.push(unit);
    else sessions.set(unit.session, [unit]);
  }
  // Each session takes a place more, for the gap behind it.
  const long = Math.max(1, Math.ceil(Math.sqrt(shape * (sorted.length + sessions.size))));
  const placed: { unit: Unit; line: number; at: number }[] = [];
  let [line, at] = [0, 0];
  for (const session of sessions.values()) {
    if (at > 0 && at + session.length > long) [line, at] = [line + 1, 0];
    for (const unit of session) {
      if (at >= long) [line, at] = [line + 1, 0];
      placed.push({ unit, line, at: at++ });
    }
    at += 1;
  }
  const lines = line + 1;
  const spots = placed.map(({ unit, line, at }) => ({ unit, x: (at + 0.5) / long, y: (line + 0.5) / lines }));
  const every = Math.ceil(lines / TICKS);
  const ticks: Tick[] = [];
  let labelled = -1;
  placed.forEach(({ unit, line }, at) => {
    const spot = spots[at];
    if (!spot || line === labelled || line % every !== 0) return;
    labelled = line;
    const label = dayOf(unit.said_at);
    if (ticks.at(-1)?.label !== label) ticks.push({ x: spot.x, y: spot.y, label });
  });
  return { spots, ticks };
}

export function BankMap({ name }: { name: string }) {
  const [wanted, setWanted] = useState<string>();
  const [shown, setShown] = useState<{ graph: Graph; around: string | undefined }>();
  const [failure, setFailure] = useState<Failure>();
  const [pointed, setPointed] = useState<string>();
  const [listed, setListed] = useState(LISTED);
  useEffect(() => {
    const stop = new AbortController();
    setPointed(undefined);
    setListed(LISTED);
    get<Graph>("graph", { bank: name, around: wanted }, stop.signal).then(
      (graph) => {
        setShown({ graph, around: wanted });
        setFailure(undefined);
      },
      (thrown) => setFailure(failureOf(thrown)),
    );
    return () => stop.abort();
  }, [name, wanted]);
  const { graph, around } = shown ?? {};
  const degrees = useMemo(() => {
    const degrees = new Map<string, number>();
    for (const { from, to } of graph?.edges ?? [])
      for (const id of [from, to]) degrees.set(id, (degrees.get(id) ?? 0) + 1);
    return degrees;
  }, [graph]);
  const middle = around !== undefined && graph?.units.find((unit) => unit.id === around);
  return (
    <section class="map" aria-label={`Map of ${name}`}>
      {failure && <ProblemView failure={failure} />}
      {graph && (
        <>
          <p class="verdict" aria-live="polite">
            <span>
              {count(graph.units.length)} of {plural(graph.total_units, "unit")}
            </span>
            <span>
              {count(graph.edges.length)} of {plural(graph.total_edges, "edge")}
            </span>
            {graph.truncated && <span>{around ? "the nearest" : "what was said last"}</span>}
          </p>
          {around !== undefined && (
            <p>
              Around <span class="words">{middle ? middle.label : around}</span>{" "}
              <button type="button" class="link" onClick={() => setWanted(undefined)}>
                What was said last
              </button>
            </p>
          )}
          <MapPicture key={around} graph={graph} pointed={pointed} onPoint={setPointed} onOpen={setWanted} />
          <h3>Its units{around === undefined ? ", the latest first" : ", the nearest first"}</h3>
          <ul class="map-list">
            {graph.units.slice(0, listed).map((unit) => (
              <li key={unit.id}>
                <button
                  type="button"
                  class={unit.id === pointed ? "link pointed" : "link"}
                  title="Show what lies around it"
                  onFocus={() => setPointed(unit.id)}
                  onMouseEnter={() => setPointed(unit.id)}
                  onClick={() => setWanted(unit.id)}
                >
                  <span class="words">{unit.label}</span>
                </button>{" "}
                <small>
                  {saidAt(unit.said_at)} · {plural(degrees.get(unit.id) ?? 0, "edge")} here
                </small>
              </li>
            ))}
          </ul>
          {listed < graph.units.length && (
            <button type="button" onClick={() => setListed(listed + LISTED)}>
              More
            </button>
          )}
        </>
      )}
    </section>
  );
}

interface PictureProps {
  graph: Graph;
  pointed?: string | undefined;
  onPoint: (id: string | undefined) => void;
  onOpen: (id: string) => void;
}

function MapPicture({ graph, pointed, onPoint, onOpen }: PictureProps) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const layer = useRef<HTMLCanvasElement>(undefined);
  const drawn = useRef(0);
  const copy = useRef<() => void>(() => {});
  const pointedNow = useRef(pointed);
  const { size, look } = useSizeAndLook(box);
  const [tip, setTip] = useState<{ unit: Unit; x: number; y: number }>();
  const { transform, zoomBy } = usePanZoom(canvas, size, 16, () => {
    setTip(undefined);
    copy.current();
  });

  const map = useMemo(() => {
    const shape = size.height ? Math.max(0.5, (size.width - MARGIN.left) / size.height) : SHAPE;
    const { spots, ticks } = mapOf(graph.units, shape);
    const across = (x: number) => MARGIN.left + x * Math.max(1, size.width - MARGIN.left - MARGIN.right);
    const down = (y: number) => MARGIN.top + y * Math.max(1, size.height - MARGIN.top - MARGIN.bottom);
    const placed = spots.map(({ unit, x, y }) => ({ unit, x: across(x), y: down(y) }));
    const tree = quadtree<Spot>(
      placed,
      (spot) => spot.x,
      (spot) => spot.y,
    );
    const at = new Map(placed.map((spot) => [spot.unit.id, spot]));
    return { placed, at, tree, ticks: ticks.map(({ y, label }) => ({ y: down(y), label })) };
  }, [graph, size.width, size.height]);

  useEffect(() => {
    const element = canvas.current;
    if (!element || !size.width) return;
    const ratio = devicePixelRatio || 1;
    element.width = size.width * ratio;
    element.height = size.height * ratio;
    const colours = lookOf(element);
    layer.current ??= document.createElement("canvas");
    const under = layer.current;
    const sharp = Math.min(ratio * LAYER_SCALE, MOST_PIXELS / Math.max(size.width, size.height));
    under.width = size.width * sharp;
    under.height = size.height * sharp;
    const context = under.getContext("2d");
    if (!context) return;
    context.setTransform(sharp, 0, 0, sharp, 0, 0);
    context.globalAlpha = graph.edges.length > MANY_EDGES ? 0.12 : 0.4;
    for (const { from, to, channel } of graph.edges) {
      const [a, b] = [map.at.get(from), map.at.get(to)];
      if (!a || !b) continue;
      context.strokeStyle = channel === "semantic" ? colours.semantic : colours.structural;
      context.setLineDash(channel === "semantic" ? [] : [4, 3]);
      context.beginPath();
      context.moveTo(a.x, a.y);
      context.lineTo(b.x, b.y);
      context.stroke();
    }
    context.globalAlpha = 1;
    context.setLineDash([]);
    context.fillStyle = colours.text;
    for (const { x, y } of map.placed) {
      context.beginPath();
      context.arc(x, y, 2.5, 0, 2 * Math.PI);
      context.fill();
    }
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = colours.quiet;
    context.textAlign = "left";
    context.textBaseline = "middle";
    for (const { y, label } of map.ticks) context.fillText(label, 8, y);
    drawn.current += 1;
    element.dataset.drawn = String(drawn.current);
    copy.current = () => {
      const context = copyLayer(element, under, size, transform.current);
      if (!context) return;
      const { k } = transform.current;
      const spot = pointedNow.current === undefined ? undefined : map.at.get(pointedNow.current);
      if (!spot) return;
      context.strokeStyle = colours.text;
      context.lineWidth = 2 / k;
      context.beginPath();
      context.arc(spot.x, spot.y, 7 / k + 2.5, 0, 2 * Math.PI);
      context.stroke();
    };
    copy.current();
  }, [graph, map, size.width, size.height, look]);

  useEffect(() => {
    pointedNow.current = pointed;
    copy.current();
  }, [pointed]);

  const find = (event: { offsetX: number; offsetY: number }) => {
    const [x, y] = transform.current.invert([event.offsetX, event.offsetY]);
    return map.tree.find(x, y, 12 / transform.current.k)?.unit;
  };
  return (
    <div class="picture" ref={box}>
      <canvas
        ref={canvas}
        role="img"
        aria-label={`${plural(graph.units.length, "unit")} in the order of time, session by session, line by line, and ${plural(graph.edges.length, "edge")} between them. The list says the same.`}
        onPointerMove={(event) => {
          const unit = find(event);
          event.currentTarget.classList.toggle("over", unit !== undefined);
          if (unit?.id !== tip?.unit.id) setTip(unit && { unit, x: event.offsetX, y: event.offsetY });
          if (unit?.id !== pointed) onPoint(unit?.id);
        }}
        onPointerLeave={() => {
          setTip(undefined);
          onPoint(undefined);
        }}
        onClick={(event) => {
          const unit = find(event);
          if (unit) onOpen(unit.id);
        }}
      />
      {tip && (
        <Tip at={tip} size={size}>
          {tip.unit.label}
          <small>{saidAt(tip.unit.said_at)}</small>
        </Tip>
      )}
      <ZoomButtons zoomBy={zoomBy} />
    </div>
  );
}
