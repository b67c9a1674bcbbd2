// Opens a module with a recipe in a thread of its own, and ends the thread where the module does not answer in time.
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { type ErrorCode, RedriveError } from "../core/errors.ts";
import { oneLine } from "../core/safe-text.ts";
import { badRecipe, type OpenModule, RECIPE_MS, tooSlow } from "../operate/recipe.ts";
import { startThread } from "../system/threads.ts";
import { settledWithin, TimeBoxError } from "../system/time-box.ts";
import { whyRefused } from "../system/trusted-file.ts";
import type { RecipeReply, RecipeTask } from "./recipe-thread.ts";

/** How long a module may take to load. */
const LOAD_MS = 30_000;
/** The thread tells of its own time limit first; a loop in it cannot tell. */
const MORE_MS = 1_000;

/** Opens the module at a path; throws for one that cannot be loaded or has no recipe. */
export const openRecipeModule: OpenModule = async (file) => {
  const path = resolve(file);
  const why = whyRefused(path);
  if (why !== null) throw refused(`expected a file that only you or root can change; ${path} ${why}`);
  if (!existsSync(path))
    throw refused(`expected a module with a recipe; got ${file}, which does not exist; check the path`);
  let hears: { resolve(reply: RecipeReply): void; reject(error: Error): void } | null = null;
  const next = (): Promise<RecipeReply> => new Promise((resolve, reject) => (hears = { resolve, reject }));
  const ready = next();
  const on = {
    message: (message: unknown) => hears?.resolve(message as RecipeReply),
    end: (error: Error) => hears?.reject(error),
  };
  const thread = startThread(new URL("./recipe-thread.js", import.meta.url), path, on, { hasUserCode: true });
  const answer = async (reply: Promise<RecipeReply>, ms: number): Promise<RecipeReply> => {
    try {
      return await settledWithin(ms, reply);
    } catch (error) {
      thread.end();
      throw error;
    }
  };
  const first = await answer(ready, LOAD_MS).catch((error: Error) => {
    const slow = `did not load within ${LOAD_MS / 1_000} s`;
    throw refused(
      `expected a module that can be loaded; ${file} ${error instanceof TimeBoxError ? slow : `ended its thread: ${oneLine(error.message)}`}`,
    );
  });
  if ("message" in first) {
    thread.end();
    throw refused(
      `expected a module whose default export is a function; got ${file}: ${oneLine(first.message)}; correct it`,
    );
  }
  return {
    async rewrite(letter, maxBytes) {
      const reply = next();
      thread.post({ letter, maxBytes } satisfies RecipeTask);
      const { id } = letter.job;
      const said = await answer(reply, RECIPE_MS + MORE_MS).catch((error: Error) => {
        if (error instanceof TimeBoxError) throw tooSlow(id);
        throw badRecipe(id, `the end of its thread: ${oneLine(error.message)}`, "correct the module");
      });
      if ("text" in said) return said.text ?? "";
      throw new RedriveError((said.code ?? "invalid_argument") as ErrorCode, said.message, {
        details: { ...said.details },
      });
    },
    close: () => thread.end(),
  };
};

function refused(message: string): RedriveError {
  return new RedriveError("invalid_argument", `recipe: ${message}; nothing was written`);
}
