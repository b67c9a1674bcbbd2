// Functions that wrap every run: tracing, context, measuring. The first in the list is the outermost.
import { resultOf } from "../core/item-outcome.ts";
import type { JobContext, JobDefinition } from "./define-job.ts";

/**
 * Wraps a handler; returns the result of `next`, or something else in its place. `next` rejects where the handler threw
 * or returned a failure.
 */
export type Middleware = (
  run: { readonly type: string; readonly input: unknown; readonly context: JobContext },
  next: () => Promise<unknown>,
) => Promise<unknown>;

/** The definition with the middleware around its handler. */
export function wrapped(definition: JobDefinition, middleware: readonly Middleware[]): JobDefinition {
  if (middleware.length === 0) return definition;
  const { type } = definition;
  return {
    ...definition,
    run(input, context) {
      const call = (at: number): Promise<unknown> => {
        const layer = middleware[at];
        if (!layer)
          return Promise.resolve()
            .then(() => definition.run(input, context))
            .then(resultOf);
        return Promise.resolve()
          .then(() => layer({ type, input, context }, () => call(at + 1)))
          .then(resultOf);
      };
      return call(0);
    },
  };
}
