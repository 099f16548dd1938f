// The forms of the interface, by the names that the page uses. api.d.ts is made of schemas/openapi.v1.json.
import type { components } from "./api";
import type { NearMiss, Scale, Walk } from "./contract";

export type * from "./contract";

type Forms = components["schemas"];

export type Evidence = Omit<Forms["Evidence"], "trace" | "units"> & {
  units: (Omit<Forms["EvidenceUnit"], "provenance"> & { provenance: Provenance[] })[];
  trace: Omit<Forms["Trace"], "first_hop" | "rounds"> & {
    first_hop: Seen[];
    rounds: Round[];
    scale?: Scale;
    near?: NearMiss[];
  };
};
export type EvidenceUnit = Evidence["units"][number];
export type Excerpt = Forms["Excerpt"];
export type Provenance = Forms["Provenance"] & { share?: number };
export type FamiliarityTerms = Forms["FamiliarityTerms"];
export type Channel = Forms["Channel"];
export type Seen = Omit<Forms["Seen"], "provenance"> & { provenance: Provenance };
export type Round = Omit<Forms["Round"], "support"> & { support: Seen[]; walk?: Walk };
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
