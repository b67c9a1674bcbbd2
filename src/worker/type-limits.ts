// Supplies the limits of job types. A job carries its limits from its enqueue, so that any process can judge it. If the
// producer knew only the name of the type, the declared limits of the worker that runs it apply, because it knows the
// type and publishes its limits. The same holds for whether the handler runs in a child process, which the worker
// decides and not the job.
import { type Job, putTerms, type Terms } from "../core/job.ts";
import { loadFrom } from "../core/load.ts";
import { limitsFrom, type DeclaredByType, termsFor, termsForAll } from "../core/declared-limits.ts";
import type { JudgedBy } from "../core/verdict.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import type { Store } from "../store/store.ts";

/** The store, which returns jobs enqueued by name with the declared limits of their type. */
export function withTypeLimits(store: Store, definitions: readonly JobDefinition[]): Store {
  const own: ByType = new Map(
    definitions.map(({ type, limits, batch, policy: { keepFinishedMs, keepDeadMs } }) => {
      const keep = { keepFinishedMs, keepDeadMs };
      return [type, { limits, keep, isOutside: batch?.isOutside ?? false }];
    }),
  );
  const ownTerms = new Map([...own].map(([type, word]) => [type, termsForAll(word)]));
  return {
    ...store,
    async claim(request) {
      const answer = await store.claim(request);
      for (const job of answer.jobs) judgeable(job, ownTerms.get(job.type)?.(job));
      return answer;
    },
    async overdue(request) {
      const { of, named } = await wordsOf(store, own);
      const runs = await store.overdue({ ...request, named });
      return runs.map((run) => ({ ...run, job: judgeable(run.job, termsFor(run.job, of(run.job))) }));
    },
    async expired(request) {
      const runs = await store.expired(request);
      if (runs.length === 0) return runs;
      const { of } = await wordsOf(store, own);
      return runs.map((run) => {
        const word = of(run.job);
        return { ...run, job: judgeable(run.job, termsFor(run.job, word)), isOutside: word?.isOutside ?? false };
      });
    },
  };
}

/**
 * Puts the terms that a run is judged by into its job; those that the job did not carry are written with the verdict.
 * The store made the job for this answer alone. Some types need this for every job, and a copy would take several times
 * as long.
 */
function judgeable<J extends Job>(job: J, terms: Terms | null | undefined): J & JudgedBy {
  const judged: J & { said?: Terms | undefined } = job;
  if (!terms) return judged;
  putTerms(judged, terms);
  judged.said = terms;
  return judged;
}

const NEVER = Number.POSITIVE_INFINITY;

/** What a worker declares about a type. */
interface Word extends DeclaredByType {
  readonly isOutside: boolean;
}

type ByType = ReadonlyMap<string, Word>;

/** What every worker declares about its types, and what is declared here. */
async function wordsOf(
  store: Pick<Store, "cells">,
  own: ByType,
): Promise<{
  /** Declared by the worker that runs the job, else here, else by the worker that gives it the least time. */
  readonly of: (job: Pick<Job, "type" | "worker">) => Word | undefined;
  /** The shortest stuck limit of each type. */
  readonly named: readonly { readonly type: string; readonly stuckMs: number }[];
}> {
  const { cells } = await store.cells([{ kind: "load" }]);
  const byWorker = new Map<string, ByType>();
  for (const { holder, value } of cells) {
    const types = loadFrom(value)?.types ?? [];
    const word = (said: (typeof types)[number] | null): Word => ({
      limits: limitsFrom(said?.limits),
      isOutside: said?.isOutside === true,
    });
    byWorker.set(holder, new Map(types.map((served) => [served?.type, word(served)])));
  }
  const strictest = new Map<string, Word>();
  for (const words of [own, ...byWorker.values()])
    for (const [type, said] of words)
      if ((said.limits.stuckMs ?? NEVER) <= (strictest.get(type)?.limits.stuckMs ?? NEVER)) strictest.set(type, said);
  return {
    of({ type, worker }) {
      const word = byWorker.get(worker ?? "")?.get(type) ?? own.get(type) ?? strictest.get(type);
      return word && { ...word, keep: own.get(type)?.keep };
    },
    named: [...strictest].flatMap(([type, { limits }]) =>
      limits.stuckMs == null ? [] : [{ type, stuckMs: limits.stuckMs }],
    ),
  };
}
