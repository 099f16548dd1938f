// The forms of a report: schemas/report.v1.json and schemas/report-question.v1.json.
import type { Evidence } from "../forms";

export type LostAt = "unit" | "candidate" | "cutoff" | "walk" | "assembly" | "context";

export interface Mean {
  mean: number;
  low?: number | null;
  high?: number | null;
}
export interface StageFigures {
  recall?: Mean | null;
  full?: Mean | null;
  facts?: Mean | null;
  tokens?: number | null;
}
export interface CategoryFigures {
  name: string;
  questions: number;
  scored: number;
  recollection: StageFigures;
  first_hop: StageFigures;
}
export interface Retriever {
  name: string;
  kind: "recollection" | "first_hop" | "baseline" | "ablation";
  tokens: number;
  recall: Mean;
}
export interface QuestionLine {
  id: string;
  file: string;
  conversation: string;
  category: string;
  supported?: boolean | null;
  text: string;
  evidence: number;
  found: number;
  found_by_first_hop?: number | null;
  facts?: number | null;
  tokens: number;
  first_hop_tokens?: number | null;
  lost_at: LostAt[];
}
export interface ReportFigures {
  schema: number;
  dataset: string;
  file: string;
  profile: string;
  found_means: "whole" | "touched";
  retrievers: Retriever[];
  overall: CategoryFigures;
  categories: CategoryFigures[];
  questions: QuestionLine[];
}
export interface ExpectedTurn {
  turn: string;
  speaker: string;
  text: string;
  units: string[];
  found: boolean;
  found_by_first_hop?: boolean | null;
  lost?: {
    at: LostAt;
    sentence: string;
    standing?: {
      unit: string;
      said_at: string;
      rank: number;
      parts: number;
      share: number;
      last_quoted?: number | null;
    } | null;
  } | null;
}
export interface QuestionReport {
  schema: number;
  id: string;
  conversation: string;
  category: string;
  supported?: boolean | null;
  reference?: string | null;
  evidence: ExpectedTurn[];
  facts?: number | null;
  tokens: number;
  first_hop_tokens?: number | null;
  answer: Evidence;
}
