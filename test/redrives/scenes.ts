// Dead letters of one cause in a test's Redrive, and a switch that mends the bug.
import { onTestFinished } from "vitest";
import { defineJob, fixed, type JobDefinition, PermanentError, type TypeOptions } from "../../src/index.ts";
import { createTestRedrive, type TestRedrive, type TestRedriveOptions } from "../../src/testing/index.ts";

/** What the jobs of a scene do when they run; by default they fail as they did. */
export interface Bug {
  /** Throws for a job that fails. */
  hits: (input: { readonly n: number }) => void;
  /** The jobs that have run since the letters were made, in order. */
  readonly ran: number[];
}

/** A scene: so many dead letters of the type `charge`. */
export interface Scene {
  readonly redrive: TestRedrive;
  readonly bug: Bug;
  readonly job: JobDefinition<{ n: number }>;
  readonly ids: readonly string[];
}

/** The failure that all letters of a scene died of. */
export function declined(): never {
  throw new Error("card declined");
}

/** A failure that says nothing of the service. */
export function refused(): never {
  throw new PermanentError("no such card");
}

/** A failure of another cause. */
export function unplugged(): never {
  throw new TypeError("the terminal is unplugged");
}

/** Enqueues jobs that die of one cause. */
export async function deadScene(
  count: number,
  options: TestRedriveOptions & {
    readonly of?: (n: number) => { readonly group?: string; readonly key?: string; readonly tenant?: string };
    readonly type?: TypeOptions;
    readonly dies?: () => never;
  } = {},
): Promise<Scene> {
  const { of = () => ({}), type = {}, dies = declined, ...rest } = options;
  const bug: Bug = { hits: dies, ran: [] };
  const job = defineJob("charge", {
    maxAttempts: 1,
    backoff: fixed("4h"),
    ...type,
    run(input: { n: number }) {
      bug.ran.push(input.n);
      bug.hits(input);
    },
  });
  const redrive = await createTestRedrive({ jobs: [job], ...rest });
  onTestFinished(() => redrive.close());
  const ids: string[] = [];
  for (let n = 0; n < count; n++) ids.push((await redrive.enqueue(job, { n }, of(n))).id);
  await redrive.drain({ until: "idle" });
  bug.ran.length = 0;
  return { redrive, bug, job, ids };
}

/** Mends the bug. */
export function mend(bug: Bug): void {
  bug.hits = () => undefined;
}
