// What several handlers of jobs and dead letters share: filters, pages, and what a caller may see of them.
import type { DeadLetter } from "../../core/job.ts";
import type { DeadLetterFilter } from "../../operate/dead-letters.ts";
import { letterForm } from "../../operate/job-forms.ts";
import { pageForm } from "../../operate/view-forms.ts";
import type { Redrive } from "../../redrive-api.ts";
import { readHolding } from "../../services/holding.ts";
import type { Page } from "../../store/store.ts";
import type { Call } from "../call.ts";
import { HttpError } from "../http-error.ts";
import { instantFrom } from "../input.ts";
import type { RouteName } from "../routes.ts";

/** True where the caller may see payloads and did not ask to leave them out. */
export function withPayloads({
  caller,
  query,
}: {
  caller: Call["caller"];
  query: { payloads?: boolean | undefined };
}): boolean {
  return caller?.payloads === true && query.payloads !== false;
}

/** The document without what only the right to see payloads shows. */
export function shown(form: object, isWhole: boolean): object {
  if (isWhole) return form;
  const { payload: _payload, progress: _progress, result: _result, ...rest } = form as Record<string, unknown>;
  return rest;
}

/** Notes that the caller sees the payloads of these jobs. */
export async function noted<N extends RouteName>(
  call: Call<N>,
  ids: readonly string[],
  isWhole: boolean,
): Promise<void> {
  if (isWhole && call.caller !== null && ids.length > 0) await call.server.reveal(call.caller, ids, call.requestId);
}

/** The filter of letters in the form of the library; times are those of the store. */
export async function letterFilterOf(
  { store }: Pick<Redrive, "store">,
  filter: Readonly<Record<string, unknown>>,
): Promise<DeadLetterFilter> {
  const { from, until, ...rest } = filter as { from?: string | number; until?: string | number };
  if (from === undefined && until === undefined) return rest as DeadLetterFilter;
  const { now } = await store.control();
  return {
    ...rest,
    ...(from !== undefined && { from: instantFrom(from, "from", now) }),
    ...(until !== undefined && { until: instantFrom(until, "until", now) }),
  };
}

/** A page of dead letters as documents; each with its failed runs. */
export async function letterPage<N extends RouteName>(
  call: Call<N>,
  page: Page<DeadLetter>,
  isWhole: boolean,
): Promise<object> {
  const { store } = call.redrive;
  const [holding, histories] = await Promise.all([
    readHolding(store),
    Promise.all(page.items.map(({ job }) => store.history(job.id))),
  ]);
  const items = page.items.map((letter, at) => shown(letterForm(letter, histories[at] ?? [], holding), isWhole));
  await noted(
    call,
    page.items.map(({ job }) => job.id),
    isWhole,
  );
  return { items, ...pageForm(page) };
}

/** The error for a record that is not the one any more that the caller saw. */
export function changedMeanwhile(what: string): HttpError {
  return new HttpError("precondition_failed", `The ${what} has changed since you read it. Look at it again.`);
}
