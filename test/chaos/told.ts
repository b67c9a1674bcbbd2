// What every process of a chaos run is told through its environment: where histories go, where the store is, when the run
// began, the seed, and which actors are broken on purpose.

/** Names of the environment variables, in one place for those who set them and those who read them. */
export const TOLD = {
  folder: "REDRIVE_CHAOS_FOLDER",
  store: "REDRIVE_CHAOS_STORE",
  epoch: "REDRIVE_CHAOS_EPOCH",
  seed: "REDRIVE_CHAOS_SEED",
  sabotage: "REDRIVE_CHAOS_SABOTAGE",
  until: "REDRIVE_CHAOS_UNTIL",
} as const;

/** Ways to break an actor, to prove that chaos finds out. */
export const SABOTAGES = ["forgetful", "unfenced"] as const;
/** One of `SABOTAGES`. */
export type Sabotage = (typeof SABOTAGES)[number];

/** One of the things this process was told. */
export function told(what: keyof typeof TOLD): string {
  const value = process.env[TOLD[what]];
  if (value === undefined) throw new Error(`${TOLD[what]} is not set; only the conductor starts this.`);
  return value;
}

/** The name under which this process writes its history; the child of a suspect has its and its parent's pid. */
export function ownName(): string {
  const [, program = "", name = "conductor"] = process.argv;
  if (program.endsWith("isolated-child.js")) return `isolated-${process.pid}-${process.ppid}`;
  return program.endsWith("actor.js") ? name : "conductor";
}

/** Waits for real. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
