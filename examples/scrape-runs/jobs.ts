// The job types. Nothing here says anything about hanging: how long a run may take, when it is tried again and when it is
// given up stands in redrive.config.ts. What the sites do is what scrapers meet.
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { defineJob, type JobContext } from "redrive";

/** Where everything of this example waits. */
export const QUEUE = "scrape-runs";
/** The folder of the journal, the logs and the database file. */
export const folder: string = process.env.SCRAPE_FOLDER ?? fileURLToPath(new URL("data", import.meta.url));
/** What every run really did, line by line. */
export const journal: string = join(folder, "journal.ndjson");

/** How a site behaves: well, hanging in the first run or in all, killing the process in its first run, or as a zombie. */
export const SITES = ["steady", "hangs-once", "hangs-always", "kills-once", "zombie"] as const;
/** One of `SITES`. */
export type Site = (typeof SITES)[number];

/** A line of the journal. */
export interface Entry {
  readonly job: string;
  readonly attempt: number;
  readonly what: "started" | "scraped" | "aborted" | "refused";
  readonly pid: number;
}

/** A run of a site; a hanging one hears the abort, as `fetch(url, { signal })` would. */
export const scrape = defineJob("scrape", {
  queue: QUEUE,
  async run({ site }: { site: Site }, context) {
    const { attempt, signal } = context;
    note(context, "started");
    if (site === "hangs-always" || (site === "hangs-once" && attempt === 1)) await hang(context);
    if (site === "kills-once" && attempt === 1) process.kill(process.pid, "SIGKILL");
    if (site === "zombie" && attempt === 1) await wakeLate(context);
    await sleep(50, undefined, { signal });
    note(context, "scraped");
    return { site, pages: 12 };
  },
});

/** A job type without a limit: only a person can say that it hangs. */
export const archive = defineJob("archive", {
  queue: QUEUE,
  stuck: null,
  async run(_input: object, context) {
    note(context, "started");
    if (context.attempt === 1) await hang(context);
    note(context, "scraped");
    return { files: 3 };
  },
});

async function hang(context: JobContext): Promise<never> {
  try {
    return await sleep(600_000, undefined as never, { signal: context.signal });
  } catch (error) {
    note(context, "aborted");
    throw error;
  }
}

/** Ignores the abort, and comes back to life when another worker has the job. */
async function wakeLate(context: JobContext): Promise<void> {
  await sleep(4_000);
  try {
    await context.progress({ pages: 12 });
  } catch (error) {
    note(context, "refused");
    throw error;
  }
}

function note({ job, attempt }: JobContext, what: Entry["what"]): void {
  appendFileSync(journal, `${JSON.stringify({ job: job.id, attempt, what, pid: process.pid } satisfies Entry)}\n`);
}
