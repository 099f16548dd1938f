// Where the units of a ripple stand.
//
// In: its units and edges. Out: a point each, in a circle of radius 1 around the question. The distance is 1 − share
// on the question's scale, for every unit alike. The angle is when it was said: the oldest at 12 o'clock, then
// clockwise, a sector a day. The same input gives the same points.
import { forceCollide, forceRadial, forceSimulation, forceX, forceY } from "d3-force";
import { dayOf } from "../words";
import type { Ripple, RippleUnit } from "./ripple";

export interface Point {
  x: number;
  y: number;
}

export interface Sector {
  angle: number;
  label: string;
}

export interface Layout {
  points: Map<string, Point>;
  sectors: Sector[];
  /** The radius of a share. */
  radius: (share: number) => number;
}

/** Nothing stands nearer to the question than this. */
const NEAREST = 0.13;
/** Share 0 and below stand here. */
const FURTHEST = 1;
/** More units than these are not moved apart: there is no room. */
const MOST_APART = 400;
/** Two days nearer than this, in radians, have one label. */
const LEAST_GAP = 0.24;

/** The radius of a share: the scale from 1 to the least share that is shown fills the circle. */
export function radiusOf(least: number): (share: number) => number {
  const low = Math.min(least, 0.9);
  return (share) => NEAREST + ((FURTHEST - NEAREST) * (1 - Math.max(low, Math.min(1, share)))) / (1 - low);
}

/** Lays a ripple out; `also` are units of other answers to the same question, so that angles stay. */
export function layoutOf(ripple: Ripple, also: RippleUnit[] = [], apart = 0.045): Layout {
  const all = new Map([...also, ...ripple.units].map((unit) => [unit.id, unit]));
  const shares = [...all.values()].flatMap((unit) => (unit.share === undefined ? [] : [unit.share]));
  const bounds = [...shares, ripple.cutoff, ripple.floor].filter((share) => share !== undefined);
  const radius = radiusOf(Math.max(0, Math.min(...bounds, 0.9) - 0.03));

  const timed = [...all.values()].sort(
    (a, b) => Date.parse(a.saidAt ?? "") - Date.parse(b.saidAt ?? "") || (a.id < b.id ? -1 : 1),
  );
  const dated = timed.filter((unit) => unit.saidAt !== undefined);
  // A day has a sector, as wide as what it holds. In it each kind is spread by itself: they differ in distance.
  const days = new Map<string, RippleUnit[]>();
  for (const unit of dated) {
    const day = dayOf(unit.saidAt ?? "");
    const units = days.get(day);
    if (units) units.push(unit);
    else days.set(day, [unit]);
  }
  const widths = [...days.values()].map((units) => {
    const evidence = units.filter((unit) => unit.fate === "evidence").length;
    return 0.5 + evidence + 0.2 * (units.length - evidence);
  });
  const full = widths.reduce((sum, width) => sum + width, 0) || 1;
  const angles = new Map<string, number>();
  const sectors: Sector[] = [];
  let start = 0;
  [...days].forEach(([day, units], at) => {
    const width = ((widths[at] ?? 0) / full) * 2 * Math.PI;
    sectors.push({ angle: start, label: day });
    for (const kind of ["evidence", "other", "reached"]) {
      const same = units.filter((unit) => kindOf(unit) === kind);
      same.forEach((unit, i) => {
        angles.set(unit.id, start + (width * (i + 0.5)) / same.length);
      });
    }
    start += width;
  });
  // Without a time a unit stands beside the one that led to it.
  for (const unit of timed) {
    if (angles.has(unit.id)) continue;
    const from = unit.from === undefined ? undefined : angles.get(unit.from);
    angles.set(unit.id, from ?? hashed(unit.id) * 2 * Math.PI);
  }
  const placed = timed.map((unit, rank) => {
    const angle = angles.get(unit.id) ?? 0;
    // Without a share, as where channels find the first hop, the place in the evidence says how near.
    const distance = unit.share === undefined ? byPlace(unit, rank, timed.length) : radius(unit.share);
    return {
      id: unit.id,
      angle,
      distance,
      size: unit.fate === "reached" ? apart / 2 : apart,
      x: Math.sin(angle) * distance,
      y: -Math.cos(angle) * distance,
    };
  });
  if (placed.length <= MOST_APART) {
    const start = placed.map(({ x, y }) => ({ x, y }));
    forceSimulation(placed)
      .force("ring", forceRadial<(typeof placed)[number]>((node) => node.distance).strength(1))
      .force("x", forceX<(typeof placed)[number]>((_, i) => start[i]?.x ?? 0).strength(0.15))
      .force("y", forceY<(typeof placed)[number]>((_, i) => start[i]?.y ?? 0).strength(0.15))
      .force("apart", forceCollide<(typeof placed)[number]>((node) => node.size).iterations(3))
      .stop()
      .tick(120);
    // What was moved apart goes back to its own distance, which is what the picture says.
    for (const node of placed) {
      const length = Math.hypot(node.x, node.y) || 1;
      node.x *= node.distance / length;
      node.y *= node.distance / length;
    }
  }
  return {
    points: new Map(placed.map(({ id, x, y }) => [id, { x, y }])),
    sectors: thinned(sectors),
    radius,
  };
}

const kindOf = (unit: RippleUnit): string =>
  unit.fate === "evidence" || unit.fate === "reached" ? unit.fate : "other";

/** Those that have room for a label. The last stands beside the first. */
function thinned(sectors: Sector[]): Sector[] {
  const kept: Sector[] = [];
  for (const sector of sectors) {
    const last = kept.at(-1);
    const fits = !last || sector.angle - last.angle >= LEAST_GAP;
    if (fits && (!last || 2 * Math.PI - sector.angle >= LEAST_GAP)) kept.push(sector);
  }
  return kept;
}

function byPlace(unit: RippleUnit, rank: number, all: number): number {
  if (unit.hops > 0) return unit.hops === 1 ? 0.72 : 0.86;
  if (unit.place !== undefined) return 0.18 + 0.4 * Math.min(1, (unit.place - 1) / 20);
  return 0.94 + (0.06 * rank) / Math.max(1, all);
}

/** A number from 0 to 1 of a text, the same everywhere. */
function hashed(text: string): number {
  let hash = 2166136261;
  for (const letter of text) hash = Math.imul(hash ^ (letter.codePointAt(0) ?? 0), 16777619);
  return (hash >>> 0) / 2 ** 32;
}
