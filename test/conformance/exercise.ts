// The one suite that every store must pass. A store that cannot take part in a test says why.
import { describe } from "vitest";
import { badInputFacts } from "./bad-input.ts";
import { byteFacts } from "./bytes.ts";
import { causeFacts, flowFacts } from "./causes.ts";
import { cellFacts } from "./cells.ts";
import { claimFacts, laneFacts } from "./claim.ts";
import { pauseFacts, serviceFacts } from "./control.ts";
import { deadLetterFacts, historyFacts, redriveFacts } from "./dead-letters.ts";
import { dueFacts } from "./due.ts";
import { enqueueFacts } from "./enqueue.ts";
import { eventFacts } from "./event-log.ts";
import { failureFacts } from "./failures.ts";
import { figureFacts } from "./figures.ts";
import { groupFacts, placeFacts } from "./groups.ts";
import { enqueueOrderFacts, presentFailureFacts, releaseFacts, shownKeyFacts } from "./identity.ts";
import { keyFacts } from "./keys.ts";
import { filterFacts, tallyFacts } from "./letters.ts";
import { lifeFacts } from "./life.ts";
import { limitedFacts } from "./limited.ts";
import { listFacts } from "./list.ts";
import { oldLaneFacts } from "./old-lanes.ts";
import { overdueFacts } from "./overdue.ts";
import { payloadFacts } from "./payloads.ts";
import { progressFacts } from "./progress.ts";
import { recallFacts } from "./recalls.ts";
import { redriveCountFacts } from "./redrive-counts.ts";
import { fenceFacts, outcomeFacts } from "./redrives.ts";
import { pruneFacts, removeFacts, retainFacts } from "./retention.ts";
import { settleFacts } from "./settle.ts";
import { staleFacts } from "./stale.ts";
import { type Skip, type Suite, suiteOf, type World } from "./suite.ts";
import { transitionFacts } from "./transitions.ts";
import { uniqueFacts } from "./unique.ts";
import { cancelFacts, rescheduleFacts } from "./waiting.ts";
import { expiredFacts, workerFacts } from "./workers.ts";

const GROUPS: readonly (readonly [name: string, facts: (suite: Suite) => void])[] = [
  ["enqueue", enqueueFacts],
  ["keys", keyFacts],
  ["unique", uniqueFacts],
  ["limited", limitedFacts],
  ["list", listFacts],
  ["lists by due time", dueFacts],
  ["cancel", cancelFacts],
  ["reschedule", rescheduleFacts],
  ["lanes", laneFacts],
  ["claim", claimFacts],
  ["settle", settleFacts],
  ["groups", groupFacts],
  ["places in groups", placeFacts],
  ["progress", progressFacts],
  ["stale leases", staleFacts],
  ["workers", workerFacts],
  ["expired", expiredFacts],
  ["overdue", overdueFacts],
  ["dead letters", deadLetterFacts],
  ["letters", filterFacts],
  ["tally", tallyFacts],
  ["causes", causeFacts],
  ["counts per minute", flowFacts],
  ["figures", figureFacts],
  ["history", historyFacts],
  ["redrive", redriveFacts],
  ["fences", fenceFacts],
  ["outcome", outcomeFacts],
  ["redrive runs", redriveCountFacts],
  ["recall", recallFacts],
  ["repair", payloadFacts],
  ["failures", failureFacts],
  ["order of enqueue", enqueueOrderFacts],
  ["keys of letters", shownKeyFacts],
  ["releases", releaseFacts],
  ["failures of a generation", presentFailureFacts],
  ["remove", removeFacts],
  ["prune", pruneFacts],
  ["retain", retainFacts],
  ["lanes that go", oldLaneFacts],
  ["pause", pauseFacts],
  ["service", serviceFacts],
  ["cells", cellFacts],
  ["event log", eventFacts],
  ["transitions", transitionFacts],
  ["bytes", byteFacts],
  ["bad input", badInputFacts],
  ["life", lifeFacts],
];

/** Registers the suite for one store; every test opens a world of its own. */
export function exercise(name: string, open: () => Promise<World>): void {
  describe(name, () => {
    for (const [group, facts] of GROUPS) describe(group, () => facts(suiteOf(open, [])));
  });
}

/**
 * Registers the groups that can differ from what another store of the same kind has already shown;
 * `npm run prove -- conformance` registers all.
 */
export function exerciseSome(
  name: string,
  groups: readonly string[],
  open: () => Promise<World>,
  skip: readonly Skip[] = [],
): void {
  const all = GROUPS.map(([group]) => group);
  exerciseOnly(name, process.env["REDRIVE_PROVE"] === "conformance" ? all : groups, open, skip);
}

/** Registers some groups of the suite, where the others would prove nothing. */
export function exerciseOnly(
  name: string,
  groups: readonly string[],
  open: () => Promise<World>,
  skip: readonly Skip[] = [],
): void {
  describe(name, () => {
    for (const wanted of groups) {
      const [, facts] = GROUPS.find(([group]) => group === wanted) ?? [];
      if (!facts) throw new Error(`The suite has no group "${wanted}".`);
      describe(wanted, () => facts(suiteOf(open, skip)));
    }
  });
}
