// The events of each stream: the data of each event by its name, by the operation that answers with them.
// Made of schemas/openapi.v1.json by events.mjs; `npm run types` makes it again.
import type {
  AddedUnit,
  Answer,
  ArrivedTurn,
  BankProgress,
  ChangedEdges,
  ClosedWindow,
  Delta,
  Evidence,
  Problem,
  Profile,
  Progress,
  RejectedRecord,
  RemovedUnit,
  Skipped,
  Snapshot,
  Told,
  Words,
} from "./api.js";

export interface Events {
  ask: {
    answer: Answer;
    evidence: Evidence;
    problem: Problem;
    restart: Record<string, never>;
    text: Words;
  };
  events: {
    edges: ChangedEdges;
    problem: Problem;
    progress: BankProgress;
    rejected: RejectedRecord;
    reset: Told;
    skipped: Skipped;
    turn: ArrivedTurn;
    unit_added: AddedUnit;
    unit_removed: RemovedUnit;
    window: ClosedWindow;
  };
  profile: {
    problem: Problem;
    profile: Profile;
  };
  subscribe: {
    delta: Delta;
    lagged: Told;
    problem: Problem;
    progress: Progress;
    reset: Told;
    snapshot: Snapshot;
  };
  subscribe_with_body: {
    delta: Delta;
    lagged: Told;
    problem: Problem;
    progress: Progress;
    reset: Told;
    snapshot: Snapshot;
  };
}
