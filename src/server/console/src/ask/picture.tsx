// The ripple as a picture.
//
// In: a ripple, its step, and what is pointed at. Out: a canvas. Everything is drawn once into a layer for each step,
// size and look; panning and pointing only copy it (`data-drawn` counts). Nothing moves while nobody asks it to. The
// list beside it says the same.
import { quadtree } from "d3-quadtree";
import { useEffect, useRef, useState } from "preact/hooks";
import { copyLayer, Tip, usePanZoom, useSizeAndLook, ZoomButtons } from "../canvas";
import { saidAt, share as shown } from "../words";
import type { Layout } from "./layout";
import { type Look, lookOf } from "./look";
import type { Ripple, RippleUnit } from "./ripple";

/** How long one step takes. */
const STEP_MILLISECONDS = 420;
/** With more units a step is shown at once. */
const MOST_MOVED = 400;
/** Longest side of the layer, in its own pixels. */
const MOST_PIXELS = 4096;

/** Units that hold evidence which somebody expects, each found or lost. */
export type Ringed = Map<string, "found" | "lost">;

interface Props {
  ripple: Ripple;
  layout: Layout;
  step: number;
  /** Whether the step is to be seen coming. */
  moves: boolean;
  pointed?: string | undefined;
  fresh?: Set<string> | undefined;
  gone?: RippleUnit[] | undefined;
  ringed?: Ringed | undefined;
  onPoint: (id: string | undefined) => void;
  onOpen: (id: string) => void;
}

const sizeOf = (unit: RippleUnit): number =>
  unit.fate === "evidence" ? 4 + 5 * Math.min(1, unit.rho ?? 0.3) : unit.fate === "reached" ? 2 : 3.5;

export function Picture({ ripple, layout, step, moves, pointed, fresh, gone, ringed, onPoint, onOpen }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const layer = useRef<HTMLCanvasElement>(undefined);
  const drawn = useRef(0);
  const { size, look } = useSizeAndLook(box);
  const [tip, setTip] = useState<{ id: string; x: number; y: number }>();
  const copy = useRef<() => void>(() => {});
  const pointedNow = useRef(pointed);
  const [scale, setScale] = useState(1);
  const moved = () => {
    setTip(undefined);
    copy.current();
  };
  const { transform, zoomBy } = usePanZoom(canvas, size, 8, moved, setScale);

  const narrow = size.width < 480;
  const centre = { x: size.width / 2, y: size.height / 2 };
  const reach = Math.max(60, Math.min(size.width / 2 - (narrow ? 22 : 66), size.height / 2 - 26));
  const at = (id: string) => {
    const point = layout.points.get(id);
    return point && { x: centre.x + point.x * reach, y: centre.y + point.y * reach };
  };

  useEffect(() => {
    const element = canvas.current;
    if (!element || !size.width) return;
    const ratio = devicePixelRatio || 1;
    element.width = size.width * ratio;
    element.height = size.height * ratio;
    const colours = lookOf(element);
    const sharp = Math.min(ratio * scale, MOST_PIXELS / Math.max(size.width, size.height));
    layer.current ??= document.createElement("canvas");
    const under = layer.current;
    under.width = size.width * sharp;
    under.height = size.height * sharp;
    const draw = (progress: number) => {
      const context = under.getContext("2d");
      if (!context) return;
      context.setTransform(sharp, 0, 0, sharp, 0, 0);
      context.clearRect(0, 0, size.width, size.height);
      drawRipple(context, { ripple, layout, step, progress, colours, centre, reach, at, narrow, fresh, gone, ringed });
      drawn.current += 1;
      element.dataset.drawn = String(drawn.current);
    };
    copy.current = () => {
      const context = copyLayer(element, under, size, transform.current);
      if (!context) return;
      const { k } = transform.current;
      const place = pointedNow.current === undefined ? undefined : at(pointedNow.current);
      const unit = ripple.units.find((unit) => unit.id === pointedNow.current);
      if (place && unit) {
        context.strokeStyle = colours.text;
        context.lineWidth = 2 / k;
        context.beginPath();
        context.arc(place.x, place.y, sizeOf(unit) + 7 / k, 0, 2 * Math.PI);
        context.stroke();
      }
    };
    const still = !moves || ripple.units.length > MOST_MOVED || matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (still) {
      draw(1);
      copy.current();
      return;
    }
    const begun = performance.now();
    let frame = requestAnimationFrame(function next(now) {
      const progress = Math.min(1, Math.max(0, (now - begun) / STEP_MILLISECONDS));
      draw(progress);
      copy.current();
      if (progress < 1) frame = requestAnimationFrame(next);
    });
    return () => cancelAnimationFrame(frame);
  }, [ripple, layout, step, moves, size.width, size.height, look, scale, fresh, gone, ringed]);

  useEffect(() => {
    pointedNow.current = pointed;
    copy.current();
  }, [pointed]);

  const visible = ripple.units.filter((unit) => unit.step <= step);
  const find = (event: { offsetX: number; offsetY: number }) => {
    const [x, y] = transform.current.invert([event.offsetX, event.offsetY]);
    const tree = quadtree<RippleUnit>(
      visible.filter((unit) => at(unit.id)),
      (unit) => at(unit.id)?.x ?? 0,
      (unit) => at(unit.id)?.y ?? 0,
    );
    return tree.find(x, y, 16 / transform.current.k);
  };
  const unit = tip && ripple.units.find((unit) => unit.id === tip.id);
  const described = ripple.steps[step]?.sentence ?? "";
  return (
    <div class="picture" ref={box}>
      <canvas
        ref={canvas}
        role="img"
        aria-label={`The ripple of the question at this step. ${described} The list of evidence says the same.`}
        onPointerMove={(event) => {
          const found = find(event);
          event.currentTarget.classList.toggle("over", found !== undefined);
          if (found?.id !== tip?.id) setTip(found && { id: found.id, x: event.offsetX, y: event.offsetY });
          if (found?.id !== pointed) onPoint(found?.id);
        }}
        onPointerLeave={() => {
          setTip(undefined);
          onPoint(undefined);
        }}
        onClick={(event) => {
          const found = find(event);
          if (found) onOpen(found.id);
        }}
      />
      {unit && tip && (
        <Tip at={tip} size={size}>
          {unit.label.slice(0, 140)}
          <small>
            {[unit.saidAt && saidAt(unit.saidAt), unit.share !== undefined && `share ${shown(unit.share)}`, unit.reason]
              .filter(Boolean)
              .join(" · ")}
          </small>
        </Tip>
      )}
      <ZoomButtons zoomBy={zoomBy} />
    </div>
  );
}

interface Drawing {
  ripple: Ripple;
  layout: Layout;
  step: number;
  progress: number;
  colours: Look;
  centre: { x: number; y: number };
  reach: number;
  at: (id: string) => { x: number; y: number } | undefined;
  narrow: boolean;
  fresh?: Set<string> | undefined;
  gone?: RippleUnit[] | undefined;
  ringed?: Ringed | undefined;
}

function drawRipple(context: CanvasRenderingContext2D, drawing: Drawing): void {
  const { ripple, layout, step, progress, colours, centre, reach, at, narrow, fresh, gone, ringed } = drawing;
  const last = ripple.steps.length - 1;
  const circle = (x: number, y: number, radius: number) => {
    context.beginPath();
    context.arc(x, y, Math.max(0, radius), 0, 2 * Math.PI);
  };
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.lineWidth = 1;

  // The ground: days as sectors, cutoff and floor as circles.
  if (step >= 1) {
    context.strokeStyle = colours.line;
    for (const { angle, label } of layout.sectors) {
      const [x, y] = [Math.sin(angle), -Math.cos(angle)];
      if (layout.sectors.length > 1) {
        context.beginPath();
        context.moveTo(centre.x + x * reach * 0.18, centre.y + y * reach * 0.18);
        context.lineTo(centre.x + x * reach, centre.y + y * reach);
        context.stroke();
      }
      if (!narrow) {
        context.fillStyle = colours.quiet;
        context.textAlign = x > 0.2 ? "left" : x < -0.2 ? "right" : "center";
        context.fillText(label, centre.x + x * (reach + 10), centre.y + y * (reach + 14));
      }
    }
    for (const [name, share] of [
      ["cutoff", ripple.cutoff],
      ["floor", ripple.floor],
    ] as const) {
      if (share === undefined || (name === "floor" && step < 3)) continue;
      const radius = layout.radius(share) * reach;
      context.strokeStyle = colours.quiet;
      context.setLineDash(name === "floor" ? [1, 4] : []);
      circle(centre.x, centre.y, radius);
      context.stroke();
      context.setLineDash([]);
      const label = `${name} ${shown(share)}`;
      const width = context.measureText(label).width;
      const angle = name === "cutoff" ? -0.3 : 0.3;
      const [x, y] = [centre.x + Math.sin(angle) * radius, centre.y + Math.cos(angle) * radius];
      context.fillStyle = colours.ground;
      context.fillRect(x - width / 2 - 3, y - 8, width + 6, 16);
      context.fillStyle = colours.quiet;
      context.textAlign = "center";
      context.fillText(label, x, y);
    }
  }
  // The wave that the first hop is.
  const wave = step === 1 ? progress * 1.05 * reach : Number.POSITIVE_INFINITY;
  if (step === 1 && progress < 1) {
    context.strokeStyle = colours.semantic;
    context.lineWidth = 2;
    circle(centre.x, centre.y, wave);
    context.stroke();
    context.lineWidth = 1;
  }
  const fading = (fate: string) => (step === last && fate !== "evidence" ? 1 - 0.55 * progress : 1);

  for (const edge of ripple.edges) {
    if (edge.step > step) continue;
    const [from, to] = [at(edge.from), at(edge.to)];
    if (!from || !to) continue;
    const grown = edge.step === step ? progress : 1;
    context.globalAlpha = edge.kept ? 1 : 0.32 * fading("considered");
    context.strokeStyle = edge.channel === "semantic" ? colours.semantic : colours.structural;
    context.lineWidth = edge.kept ? 0.8 + 3 * Math.min(1, edge.weight) : 1;
    context.setLineDash(edge.channel === "semantic" ? [] : [6, 4]);
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.lineTo(from.x + (to.x - from.x) * grown, from.y + (to.y - from.y) * grown);
    context.stroke();
  }
  context.setLineDash([]);
  context.globalAlpha = 1;

  // Least first, so that evidence lies on top.
  const order = { reached: 0, near: 1, considered: 2, evidence: 3 };
  const units = ripple.units.filter((unit) => unit.step <= step).sort((a, b) => order[a.fate] - order[b.fate]);
  for (const unit of gone ?? []) {
    const place = at(unit.id);
    if (!place || step < last) continue;
    context.globalAlpha = 0.5;
    context.strokeStyle = colours.quiet;
    context.setLineDash([2, 2]);
    circle(place.x, place.y, 6);
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
  }
  for (const unit of units) {
    const place = at(unit.id);
    if (!place || Math.hypot(place.x - centre.x, place.y - centre.y) > wave) continue;
    const arrives = unit.step === step && step > 1 ? progress : 1;
    const radius = sizeOf(unit) * arrives;
    const colour = unit.over && unit.fate === "evidence" ? colours[unit.over] : colours.text;
    const outcome = ringed?.get(unit.id);
    context.globalAlpha = outcome ? 1 : fading(unit.fate);
    if (outcome && step === last) {
      // Full for what was found, dashed for what was lost: seen without colours, too.
      context.strokeStyle = outcome === "found" ? colours.good : colours.bad;
      context.lineWidth = 2.5;
      context.setLineDash(outcome === "found" ? [] : [4, 3]);
      circle(place.x, place.y, radius + (unit.anchor ? 8 : 5.5));
      context.stroke();
      context.setLineDash([]);
      context.lineWidth = 1;
    }
    if (unit.fate === "evidence") {
      context.fillStyle = colour;
      circle(place.x, place.y, radius);
      context.fill();
      if (fresh?.has(unit.id) && step === last) {
        context.strokeStyle = colours.semantic;
        context.lineWidth = 2;
        context.strokeRect(place.x - radius - 4, place.y - radius - 4, 2 * radius + 8, 2 * radius + 8);
        context.lineWidth = 1;
      }
    } else if (unit.fate === "reached") {
      context.fillStyle = colours.quiet;
      circle(place.x, place.y, radius);
      context.fill();
    } else {
      context.fillStyle = colours.ground;
      context.strokeStyle = unit.over ? colours[unit.over] : colours.quiet;
      context.lineWidth = 1.3;
      circle(place.x, place.y, radius);
      context.fill();
      context.stroke();
      context.lineWidth = 1;
    }
    if (unit.anchor && step >= 2) {
      const pulse = step === 2 ? 6 * Math.sin(Math.PI * progress) : 0;
      context.strokeStyle = colours.text;
      context.lineWidth = 1.5;
      circle(place.x, place.y, radius + 3.5 + pulse);
      context.stroke();
      context.lineWidth = 1;
    }
    context.globalAlpha = 1;
  }
  // Numbers last, outwards of their units: no unit hides one.
  if (step === last) {
    context.textAlign = "center";
    for (const unit of units) {
      const place = at(unit.id);
      if (!place || unit.place === undefined || (narrow && unit.place > 12)) continue;
      const away = Math.hypot(place.x - centre.x, place.y - centre.y) || 1;
      const out = sizeOf(unit) + (unit.anchor ? 4 : 0) + 8;
      const x = place.x + ((place.x - centre.x) / away) * (out + 1);
      const y = place.y + ((place.y - centre.y) / away) * out;
      context.globalAlpha = progress;
      context.lineWidth = 3;
      context.strokeStyle = colours.ground;
      context.fillStyle = colours.text;
      context.strokeText(String(unit.place), x, y);
      context.fillText(String(unit.place), x, y);
      context.globalAlpha = 1;
      context.lineWidth = 1;
    }
  }
  context.fillStyle = colours.ground;
  context.strokeStyle = colours.text;
  context.lineWidth = 1.5;
  circle(centre.x, centre.y, 10);
  context.fill();
  context.stroke();
  context.fillStyle = colours.text;
  context.font = "bold 13px system-ui, sans-serif";
  context.textAlign = "center";
  context.fillText("?", centre.x, centre.y + 1);
}
