// What the picture, the steps and the list say of an answer.
//
// In: an answer with its trace. Out: its units, edges and steps. A function of the answer alone.
import type { Evidence, NearMiss, Provenance, Walk } from "../forms";
import { plural, share as shown } from "../words";

/** What became of a unit: it is evidence; it was scored or considered and left out; the walk only passed it. */
export type Fate = "evidence" | "near" | "considered" | "reached";

export interface RippleUnit {
  id: string;
  label: string;
  saidAt?: string;
  /** Its score on the scale of the question: 1 is the bank's best part, 0 what any part has. */
  share?: number;
  fate: Fate;
  /** Place in the evidence, from 1. */
  place?: number;
  rho?: number;
  anchor: boolean;
  /** Edges from an anchor; 0 for the first hop. */
  hops: number;
  /** The channel of the edges that led to it. */
  over?: "semantic" | "structural";
  /** The unit before it on its best path. */
  from?: string;
  /** The step at which it appears. */
  step: number;
  /** Why it is no evidence. */
  reason?: string;
  /** A turn of it that Trace can be asked about. */
  turn?: string;
}

export interface RippleEdge {
  from: string;
  to: string;
  channel: "semantic" | "structural";
  weight: number;
  step: number;
  /** Whether the edge leads to evidence. */
  kept: boolean;
}

export interface RippleStep {
  name: string;
  sentence: string;
}

export interface Ripple {
  units: RippleUnit[];
  edges: RippleEdge[];
  steps: RippleStep[];
  cutoff?: number;
  floor?: number;
}

type Expansion = Extract<Provenance, { reached_by: "expansion" }>;

const isExpansion = (provenance: Provenance): provenance is Expansion => provenance.reached_by === "expansion";

/** The channel that a path is drawn in; words make no edges. */
const drawn = (channel: string): "semantic" | "structural" => (channel === "semantic" ? "semantic" : "structural");

function shareOf(provenance: Provenance[]): number | undefined {
  for (const way of provenance)
    if (way.reached_by !== "expansion" && way.share !== undefined && way.share !== null) return way.share;
  for (const way of provenance) if (isExpansion(way)) return way.familiarity;
  return undefined;
}

export function rippleOf(answer: Evidence): Ripple {
  const { trace } = answer;
  const scale = trace.scale ?? undefined;
  const units = new Map<string, RippleUnit>();
  const edges = new Map<string, RippleEdge>();
  const steps: RippleStep[] = [];

  const { cues } = trace;
  const read = [
    cues.keywords.length ? `words ${cues.keywords.join(", ")}` : "",
    cues.participants?.length ? `people ${cues.participants.join(", ")}` : "",
    cues.locations?.length ? `places ${cues.locations.join(", ")}` : "",
  ].filter(Boolean);
  steps.push({
    name: "Question",
    sentence: `Question: ${answer.question.text}${read.length ? ` Read as: ${read.join("; ")}.` : ""}`,
  });

  // First hop: what is quoted at once, and what just missed.
  const first = steps.length;
  for (const seen of trace.first_hop) {
    const known = units.get(seen.id);
    const share = shareOf([seen.provenance]);
    if (known) {
      if (seen.kept) known.fate = "evidence";
      if (share !== undefined) known.share = Math.max(known.share ?? share, share);
      continue;
    }
    units.set(seen.id, {
      id: seen.id,
      label: seen.restatement,
      share,
      fate: seen.kept ? "evidence" : "near",
      anchor: false,
      hops: 0,
      step: first,
      reason: seen.kept ? undefined : "not kept by the first hop",
    });
  }
  const near: NearMiss[] = trace.near ?? [];
  const quoted = [...units.values()].filter((unit) => unit.fate === "evidence").length;
  const scored = scale ? ` of ${plural(scale.parts_total, "part")} that were scored` : "";
  const cutoff = scale?.cutoff ?? undefined;
  steps.push({
    name: "First hop",
    sentence:
      `First hop: ${plural(quoted, "unit")}${scored}` +
      `${cutoff === undefined ? "" : `; the cutoff was ${shown(cutoff)}`}` +
      `${near.length ? `; ${plural(near.length, "near miss", "near misses")} shown` : ""}.`,
  });

  trace.rounds.forEach((round, at) => {
    const { plan } = round;
    const of = trace.rounds.length > 1 ? ` ${at + 1}` : "";
    const aim = plan.target ? ` Looks for: ${plan.target.sentence}` : "";
    steps.push({
      name: `Plan${of}`,
      sentence: plan.proceed
        ? `Plan${of}: the evidence covers ${shown(plan.sufficiency)} of the question; it walks from ${plural(plan.anchors.length, "anchor")}.${aim}`
        : `Plan${of}: stops, ${plan.reason}.`,
    });
    for (const id of plan.anchors) {
      const anchor = units.get(id);
      if (anchor) anchor.anchor = true;
    }
    if (!plan.proceed) return;
    const walk: Walk | undefined = round.walk ?? undefined;
    const start = steps.length;
    const furthest = Math.max(
      1,
      ...round.support.map(({ provenance }) => (isExpansion(provenance) ? provenance.hops : 1)),
    );
    const keptAt = new Array<number>(furthest + 1).fill(0);
    const over = {
      semantic: new Array<number>(furthest + 1).fill(0),
      structural: new Array<number>(furthest + 1).fill(0),
    };
    const counted = new Set<string>();
    for (const seen of round.support) {
      if (!isExpansion(seen.provenance)) continue;
      const { hops, path, channel, familiarity } = seen.provenance;
      const step = start + Math.min(hops, furthest) - 1;
      if (!counted.has(`${channel} ${seen.id}`)) {
        counted.add(`${channel} ${seen.id}`);
        const counts = over[drawn(channel)];
        counts[hops] = (counts[hops] ?? 0) + 1;
      }
      const known = units.get(seen.id);
      if (!known || (known.step >= start && seen.kept && known.fate !== "evidence")) {
        units.set(seen.id, {
          id: seen.id,
          label: seen.restatement,
          share: familiarity,
          fate: seen.kept ? "evidence" : "considered",
          anchor: false,
          hops,
          over: drawn(channel),
          from: path.at(-1)?.from,
          step,
          reason: seen.kept ? undefined : reasonOf(seen.provenance, scale?.floor ?? undefined),
        });
        if (seen.kept) keptAt[hops] = (keptAt[hops] ?? 0) + 1;
      }
      path.forEach((edge, i) => {
        addEdge(edges, {
          ...edge,
          channel: drawn(edge.channel),
          step: start + Math.min(i, furthest - 1),
          kept: seen.kept,
        });
      });
    }
    for (let hop = 1; hop <= furthest; hop++) {
      const counts = [
        ["semantic", over.semantic[hop] ?? 0],
        ["structural", over.structural[hop] ?? 0],
      ] as const;
      const found = counts
        .filter(([, number]) => number > 0)
        .map(([kind, number]) => `${plural(number, "unit")} over ${kind} edges`);
      steps.push({
        name: `Hop ${hop}${of && ` of plan${of}`}`,
        sentence: `Hop ${hop}: ${found.join(", ") || "nothing new"}; ${keptAt[hop] ?? 0} kept.${
          hop === furthest ? ` The walk reached ${plural(round.reached, "unit")} in all.` : ""
        }`,
      });
    }
    for (const unit of walk?.units ?? []) {
      const known = units.get(unit.id);
      if (known) {
        known.saidAt ??= unit.said_at;
        known.share ??= unit.share ?? undefined;
        continue;
      }
      units.set(unit.id, {
        id: unit.id,
        label: unit.label,
        saidAt: unit.said_at,
        share: unit.share ?? undefined,
        fate: "reached",
        anchor: unit.state === "anchor",
        hops: 1,
        step: start,
        reason: "reached, not among the best of its channel",
      });
    }
    for (const edge of walk?.edges ?? []) {
      // The walk has edges from its anchors outwards: the second ones begin at a unit that it reached.
      const step = Math.min(start + (plan.anchors.includes(edge.from) ? 0 : 1), start + furthest - 1);
      addEdge(edges, { ...edge, channel: drawn(edge.channel), step, kept: false });
    }
  });

  for (const miss of near) {
    const known = units.get(miss.id);
    if (known) {
      known.saidAt ??= miss.said_at;
      known.turn ??= miss.turn;
      if (known.share === undefined) known.share = miss.share;
      continue;
    }
    units.set(miss.id, {
      id: miss.id,
      label: `${miss.speaker}: ${miss.text}`,
      saidAt: miss.said_at,
      share: miss.share,
      fate: "near",
      anchor: false,
      hops: 0,
      step: first,
      turn: miss.turn,
      reason: `share ${shown(miss.share)}${cutoff === undefined ? "" : `, below the cutoff ${shown(cutoff)}`}; number ${miss.rank} of all parts`,
    });
  }

  const inAnswer = new Set(answer.units.map((unit) => unit.id));
  answer.units.forEach((unit, at) => {
    const last = { place: at + 1, rho: unit.rho, saidAt: unit.said_at, anchor: unit.anchor, turn: unit.sources[0] };
    const known = units.get(unit.id);
    if (known) Object.assign(known, last, { fate: "evidence", reason: undefined });
    else
      units.set(unit.id, {
        id: unit.id,
        label: unit.restatement,
        share: shareOf(unit.provenance),
        fate: "evidence",
        hops: 0,
        step: first,
        ...last,
      });
  });
  for (const unit of units.values()) {
    if (unit.fate === "evidence" && !inAnswer.has(unit.id)) {
      unit.fate = "considered";
      unit.reason = "found, and left out when the answer was put together";
    }
  }
  const byWalk = answer.units.filter((unit) => unit.provenance.every(isExpansion)).length;
  const cost = answer.tokens ? `, ${plural(answer.tokens.spent, "token")}` : "";
  steps.push({
    name: "Evidence",
    sentence: answer.supported
      ? `Evidence: ${plural(answer.units.length, "unit")}${cost}; ${answer.units.length - byWalk} by the first hop, ${byWalk} by the walk alone.`
      : "Evidence: nothing supports an answer; the agent should say that it does not know.",
  });
  // An edge is drawn where both of its ends are.
  const ends = [...edges.values()].filter((edge) => units.has(edge.from) && units.has(edge.to));
  return { units: [...units.values()], edges: ends, steps, cutoff, floor: scale?.floor ?? undefined };
}

function addEdge(edges: Map<string, RippleEdge>, edge: RippleEdge): void {
  const key = `${edge.channel} ${edge.from} ${edge.to}`;
  const known = edges.get(key);
  if (!known) edges.set(key, edge);
  else if (edge.kept) known.kept = true;
}

function reasonOf(way: Expansion, floor: number | undefined): string {
  if (floor !== undefined && way.familiarity < floor) {
    return `familiarity ${shown(way.familiarity)}, below the floor ${shown(floor)}`;
  }
  return `number ${way.rank} over ${way.channel} edges, which was not enough`;
}

/** How a unit of the answer was reached, one sentence a way. */
export function waysOf(provenance: Provenance[], cutoff: number | undefined, nameOf: (id: string) => string): string[] {
  return provenance.map((way) => {
    if (way.reached_by === "familiar") {
      const on =
        way.share === undefined || way.share === null ? `score ${shown(way.score)}` : `share ${shown(way.share)}`;
      return `Scored number ${way.rank} of all parts, ${on}${cutoff === undefined ? "" : `; the cutoff was ${shown(cutoff)}`}`;
    }
    if (way.reached_by === "first_hop")
      return `Number ${way.rank} in the ${indexName(way.channel)}, score ${shown(way.score)}`;
    const path = way.path.map((step) => `${step.channel === "semantic" ? "→" : "⇢"} ${nameOf(step.to)}`).join(" ");
    const start = way.path[0] ? nameOf(way.path[0].from) : "an anchor";
    return `Over ${plural(way.hops, `${way.channel} edge`)}: ${start} ${path}; familiarity ${shown(way.familiarity)}`;
  });
}

const indexName = (channel: string): string =>
  channel === "lexical"
    ? "index of words"
    : channel === "semantic"
      ? "index of meaning"
      : "index of people, places and times";
