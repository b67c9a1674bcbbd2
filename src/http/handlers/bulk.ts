// Changes of several jobs or dead letters at once. With a filter the caller says how many it saw, and nothing is done where
// there are more or fewer by now.
import { RedriveError } from "../../core/errors.ts";
import { invalid } from "../../core/options.ts";
import type { RescheduleOptions } from "../../operate/jobs.ts";
import type { Redrive } from "../../redrive-api.ts";
import type { Call } from "../call.ts";
import { HttpError } from "../http-error.ts";
import { letterFilterOf } from "./letters.ts";

/** How far the count may be off: this share, at least so many. */
const SHARE = 0.05;
const LEAST = 5;

/** Answers `POST /bulk`. */
export async function bulk({ redrive, as, body, caller }: Call<"bulk.act">): Promise<object> {
  const { action, target, expect, why, ...change } = body;
  if (action === "remove" && caller?.role !== "admin")
    throw new HttpError("forbidden", "Removing dead letters needs the role admin.", { details: { missing: "admin" } });
  const because = why === undefined ? {} : { why };
  if (action !== "reschedule" && Object.keys(change).length > 0)
    throw invalid("body", `no delay, runAt or priority for ${action}`, Object.keys(change).join(", "), "leave it out");
  const isOfJobs = action === "cancel" || action === "reschedule";
  const which = "ids" in target ? [...new Set(target.ids)] : await filterOf(redrive, target.filter, isOfJobs);
  if (!Array.isArray(which)) await checkScope(redrive, which as object, isOfJobs, expect?.count);
  switch (action) {
    case "cancel":
      return as.jobs.cancel(which as string[], because);
    case "reschedule":
      return as.jobs.reschedule(which as string[], { ...change, ...because } as RescheduleOptions);
    case "retry":
      return as.deadLetters.retry(which as string[], because);
    case "remove":
      return { ...(await as.deadLetters.remove(which as string[], because)) };
  }
}

async function filterOf(
  redrive: Redrive,
  filter: Readonly<Record<string, unknown>>,
  isOfJobs: boolean,
): Promise<object> {
  return isOfJobs ? filter : letterFilterOf(redrive, filter);
}

/** Refuses a filter that finds more or less than the caller saw. */
async function checkScope(
  redrive: Redrive,
  filter: object,
  isOfJobs: boolean,
  seen: number | undefined,
): Promise<void> {
  if (seen === undefined)
    throw invalid("expect.count", "how many you saw, because the target is a filter", "nothing", "count them first");
  const slack = Math.max(LEAST, Math.floor(seen * SHARE));
  const most = seen + slack + 1;
  const found = isOfJobs ? await countJobs(redrive, filter, most) : await countLetters(redrive, filter, most);
  if (Math.abs(found - seen) <= slack) return;
  const many = found >= most ? `at least ${found}` : String(found);
  throw new RedriveError("conflict", `You saw ${seen}, and now there are ${many}. Nothing was changed; look again.`, {
    details: { reason: "scope_changed", expected: seen, found },
  });
}

async function countJobs(redrive: Redrive, filter: object, most: number): Promise<number> {
  let found = 0;
  for await (const _ of redrive.jobs.all(filter)) if (++found >= most) break;
  return found;
}

async function countLetters(redrive: Redrive, filter: object, most: number): Promise<number> {
  let found = 0;
  for await (const _ of redrive.deadLetters.all(filter)) if (++found >= most) break;
  return found;
}
