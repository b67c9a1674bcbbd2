// The thread in which a module with a recipe runs, so that its owner can end a loop in it.
import { isRedriveError } from "../core/errors.ts";
import { textOf } from "../core/failure.ts";
import type { DeadLetter } from "../core/job.ts";
import { type RecipeFunction, rewriteBy } from "../operate/recipe.ts";
import { insideThread } from "../system/threads.ts";
import { loadModule } from "./load-module.ts";

/** A letter to be rewritten. */
export interface RecipeTask {
  readonly letter: DeadLetter;
  readonly maxBytes: number;
}

/** What the thread answers: that it is ready, or why not; then each new payload, or why there is none. */
export type RecipeReply =
  | { readonly text: string | null }
  | { readonly code: string | null; readonly message: string; readonly details: object };

const thread = insideThread();
const reply = (message: RecipeReply): void => thread.post(message);
const refuse = (error: unknown): void => {
  const { code = null, details = {} } = isRedriveError(error) ? error : {};
  reply({ code, message: isRedriveError(error) ? error.message : textOf(error), details });
};

const loaded = loadModule(thread.data as string).then(({ default: run }) => {
  // A module that was transformed may hold its exports in its default export.
  const found = typeof run === "object" && run !== null && "default" in run ? run.default : run;
  if (typeof found !== "function") throw new Error("it has no default export that is a function");
  return found as RecipeFunction;
});
loaded.then(() => reply({ text: null }), refuse);

thread.on({
  turn(messages) {
    for (const { letter, maxBytes } of messages as RecipeTask[])
      loaded.then((run) => rewriteBy(run, letter, maxBytes)).then((text) => reply({ text }), refuse);
    return false;
  },
  stop: () => undefined,
});
