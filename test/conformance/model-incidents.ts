// Sequences about the hour after an incident: jobs that die of one cause, then redrive runs, drivers, operators and a worker
// that takes what is sent. In sequences of all commands a run hardly ever gets to its end.
import fc from "fast-check";
import { complete, dead, failure, retry } from "../support/verdicts.ts";
import { type Command, command } from "./model-command.ts";
import { anyCommand, claimAll, enqueue, enqueueDue, waitBriefly } from "./model-commands.ts";
import { changeRun, drive, driveOn, edit, goOn, hold, startRun } from "./model-driven.ts";

const verdicts = {
  complete: () => complete(),
  dead: () => dead({ failure: failure({ fingerprint: "f1" }) }),
  other: () => dead({ failure: failure({ fingerprint: "f2" }) }),
  retry: () => retry({ delayMs: 1, failure: failure({ fingerprint: "f1" }) }),
};

/** Settles everything that runs. */
const settleAll = (kinds: readonly (keyof typeof verdicts)[]): fc.Arbitrary<Command> =>
  command("settleAll", fc.constantFrom(...kinds), (shared, kind) => {
    const running = shared.latest.jobs.filter(({ state }) => state === "running");
    const settlements = running.flatMap(({ id, epoch }) => {
      const lease = shared.leases.findLast((each) => each.id === id && each.epoch === epoch);
      return lease ? [{ ...lease, verdict: verdicts[kind](), redriven: true as const }] : [];
    });
    return (store) => store.settle({ settlements });
  });

const weighted = <T>(weight: number, arbitrary: fc.Arbitrary<T>) => ({ weight, arbitrary });

/** One command, or a turn of a driver and of a worker that completes what it sent. */
const anyTurn: fc.Arbitrary<Command[]> = fc
  .oneof(
    startRun,
    weighted(8, drive),
    changeRun,
    edit,
    weighted(2, claimAll),
    weighted(2, settleAll(["complete", "complete", "complete", "dead", "other", "retry"])),
    weighted(3, waitBriefly),
    weighted(2, anyCommand),
  )
  .map((one) => [one]);

const started = fc.tuple(startRun, drive).map((all) => [...all]);
/** Others act while a driver is between two of its calls. */
const between = fc
  .tuple(hold, fc.oneof(weighted(3, changeRun), driveOn, weighted(1, waitBriefly), edit), goOn)
  .map((all) => [...all]);
/** More jobs die of the cause while a run is under way. */
const died = fc.tuple(enqueueDue, claimAll, settleAll(["dead"]), waitBriefly, driveOn).map((all) => [...all]);
const turn = fc.tuple(waitBriefly, driveOn, claimAll, settleAll(["complete"])).map((all) => [...all]);

/** A sequence that begins with dead letters, and ends with drivers and a worker that nothing disturbs. */
export const anyIncidents: fc.Arbitrary<Command[]> = fc
  .tuple(
    fc.tuple(enqueueDue, enqueue, claimAll, settleAll(["dead"]), waitBriefly, startRun),
    fc.array(fc.oneof(weighted(3, anyTurn), weighted(2, started), weighted(2, between), died, turn), {
      minLength: 4,
      maxLength: 16,
      size: "max",
    }),
    fc.tuple(turn, turn, turn, turn),
  )
  .map(([before, turns, after]) => [...before, ...turns.flat(), ...after.flat()]);
