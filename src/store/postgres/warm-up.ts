// Lets the server plan the statements of every job in advance, on every connection that a worker uses at once.
// Otherwise the first jobs of a worker would wait for these plans, and later ones whenever a connection is first used.
import type { Context } from "./context.ts";
import { settleStatements } from "./settle-statements.ts";
import type { Waker } from "./wake.ts";
import { claimStatement } from "./work.ts";

/** A look, a claim and a settle at the same time. */
const CONNECTIONS = 3;

/** Claims no jobs and settles none, which reads and writes almost nothing. */
export function warmUp({ db, s }: Context, waker: Waker): () => Promise<void> {
  const claim = claimStatement(s);
  const { complete } = settleStatements(s, waker);
  const once = (): Promise<void> =>
    db.together(async (ask) => {
      await ask(claim, "", 0, 0, [], [], 0, "", 0, [], [], [], [], null);
      await ask(complete, [], [], [], [], [], "", 0);
    });
  return async () => void (await Promise.all(Array.from({ length: CONNECTIONS }, once)));
}
