// The forms of the interface, by the names that the page uses. api.d.ts is made of schemas/openapi.v1.json.
import type { components } from "./api";

type Forms = components["schemas"];

export type Evidence = Omit<Forms["Evidence"], "trace" | "units"> & {
  units: (Omit<Forms["EvidenceUnit"], "provenance"> & { provenance: Provenance[] })[];
  trace: Omit<Forms["Trace"], "first_hop" | "rounds"> & { first_hop: Seen[]; rounds: Round[] };
};
export type EvidenceUnit = Evidence["units"][number];
export type Excerpt = Forms["Excerpt"];
export type Provenance = Forms["Provenance"] & { share?: number };
export type FamiliarityTerms = Forms["FamiliarityTerms"];
export type Channel = Forms["Channel"];
export type Seen = Omit<Forms["Seen"], "provenance"> & { provenance: Provenance };
export type Round = Omit<Forms["Round"], "support"> & { support: Seen[] };
export type Step = Forms["Step"];
export type UnitView = Forms["UnitView"];
export type EdgeView = Forms["EdgeView"];
export type TurnView = Forms["TurnView"];
export type Turns = Forms["Turns"];
export type BankStatus = Forms["BankStatus"];
export type Status = Forms["Status"];
export type Stats = Forms["Stats"];
export type SnapshotList = Forms["SnapshotList"];
export type Problem = Forms["Problem"];
export type Progress = Forms["Progress"];
export type Delta = Forms["Delta"];
export type SubscribedUnit = Forms["SubscribedUnit"];
export type FlatUnit = Forms["FlatUnit"];
export type NearMiss = Forms["NearMiss"];
export type Scale = Forms["Scale"];
export type Walk = Forms["Walk"];
export type TokenView = Forms["TokenView"];
export type Point = Forms["Point"];
export type History = Forms["History"];
export type BankCounts = Forms["BankCounts"];
export type BankPage = Forms["Banks"];
export type StepState = Forms["StepState"];
export type ExplainStep = Forms["ExplainStep"];
export type Explanation = Forms["Explanation"];
