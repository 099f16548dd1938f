// What Health samples while it is open: a point of each of its lines.
//
// In: the status of the service at moments. Out: values, and growth a second. Functions of what they are given.
import type { Status } from "./forms";

export interface Sample {
  at: number;
  behind: number;
  /** Records of the turns topic; unknown to a token of some banks, and so are the next two. */
  turns?: number;
  questions?: number;
  /** What 99 of 100 questions of the last minutes took at most; unknown where there was none. */
  p99?: number;
}

export function sampleOf(status: Status, at: number): Sample {
  const { behind, after, questions } = status;
  // `PARTITION:OFFSET` of each partition.
  const offsets = after ? after.split(",").map((place) => Number(place.split(":")[1]) + 1) : undefined;
  return {
    at,
    behind,
    turns: offsets?.reduce((sum, offset) => sum + offset, 0) ?? (questions ? 0 : undefined),
    questions: questions?.total,
    p99: questions?.p99_ms ?? undefined,
  };
}

/** How much a count grew a second, from each sample to the next; unknown where the service began again. */
export function perSecond(samples: Sample[], of: "turns" | "questions"): (number | undefined)[] {
  return samples.slice(1).map((sample, at) => {
    const before = samples[at];
    const [from, to] = [before?.[of], sample[of]];
    if (!before || from === undefined || to === undefined || to < from) return undefined;
    return (to - from) / ((sample.at - before.at) / 1000);
  });
}
