// Forms that schemas/openapi.v1.json will have.
import type { Channel, FamiliarityTerms } from "./forms";

export interface Scale {
  zero: number;
  best: number;
  cutoff?: number;
  floor?: number;
  parts_total: number;
  scored: "every_part" | "candidates";
}
export interface NearMiss {
  id: string;
  restatement: string;
  part: number;
  turn: string;
  speaker: string;
  said_at: string;
  text: string;
  rank: number;
  score: number;
  share: number;
  terms: FamiliarityTerms;
}
export interface Walk {
  units: {
    id: string;
    label: string;
    said_at: string;
    share?: number;
    state: "anchor" | "known" | "reached" | "considered" | "kept";
  }[];
  edges: { from: string; to: string; channel: Channel; weight: number }[];
  truncated: number;
}
export interface TokenView {
  name?: string;
  rights: string[];
  banks: string[];
  expires?: string;
  requests_per_minute?: number;
  requests_left?: number;
}
export interface Point {
  offset: string;
  append_ms: number;
}
export interface History {
  bank: string;
  points: Point[];
  oldest?: Point;
  newest?: Point;
  more: number;
}
export interface BankCounts {
  bank: string;
  state: "here" | "loading" | "elsewhere" | "quarantined";
  units?: number;
  semantic_edges?: number;
  structural_edges?: number;
  behind?: number;
  last_append_ms?: number;
}
export interface BankPage {
  banks: string[];
  counts?: BankCounts[];
  next?: string;
}
export type StepState = "passed" | "failed" | "not_reached" | "unknown";
export interface ExplainStep {
  step: string;
  state: StepState;
  sentence: string;
  change?: string;
  numbers: Record<string, unknown>;
}
export interface Explanation {
  schema: number;
  bank: string;
  subject?: { turn?: string; unit?: string; part?: number; speaker?: string; said_at?: string; text?: string };
  quoted: boolean;
  failed?: string;
  sentence: string;
  change?: string;
  steps: ExplainStep[];
  others?: { unit: string; part: number; share: number; quoted: boolean }[];
  as_of?: string;
  vector_hash?: string;
  settings_hash?: string;
}
