// Writes the event log: the actions of people as an intent and an outcome, and what workers noticed as one row. Not the
// events of `redrive.on`, which tell a program about its own process.
import { type ActionStep, checkWhy, eventValue } from "../core/event-log.ts";
import { isRedriveError } from "../core/errors.ts";
import { textOf } from "../core/failure.ts";
import { masked, safeLine } from "../core/safe-text.ts";
import type { Store } from "../store/store.ts";
import type { Log } from "../system/log.ts";

/** What every call of an operator takes. */
export interface ActionOptions {
  /** Why you do it, for the event log; 1 to 1,000 characters. */
  readonly why?: string;
}

/** An action of a person. */
export interface OperatorAction<T> {
  readonly kind: string;
  /** What it is about; null for none or several. */
  readonly subject: string | null;
  readonly why: unknown;
  /** True where nothing is to be done: then nothing is written. */
  readonly isEmpty?: boolean;
  /** What the intent says besides. */
  readonly details?: object;
  /** What the outcome says besides; where the action failed, without its answer. */
  readonly outcome?: (answer: T | undefined) => object;
}

/** The log of one program. */
export interface EventLog {
  /** The person or program that acts through it. */
  readonly actor: string;
  /**
   * Writes the intent, carries out the action, writes its outcome. Where the intent cannot be written, nothing is done.
   * Where the outcome cannot be, the action stands and its answer is returned: a caller that got an error would do it
   * again. A warning in the program's log says so, and the event log shows the intent alone, whose end is unknown. The
   * same is true where the store did not answer the action itself.
   */
  act<T>(action: OperatorAction<T>, work: () => Promise<T>): Promise<T>;
}

/** The event log of a store, under the name of an actor. */
export function openEventLog({
  store,
  actor,
  log,
  request,
}: {
  readonly store: Pick<Store, "record">;
  readonly actor: string;
  readonly log: Log;
  /** The request that every action through it belongs to; its number stands in the details of each row. */
  readonly request?: string | undefined;
}): EventLog {
  const asked = request === undefined ? {} : { request };
  return {
    actor,
    async act<T>(
      { kind, subject, why, isEmpty = false, details = {}, outcome = () => ({}) }: OperatorAction<T>,
      work: () => Promise<T>,
    ) {
      if (why !== undefined) checkWhy(why);
      if (isEmpty) return work();
      const about = { kind, actor, why: (why as string | undefined) ?? null, subject };
      const [intent = null] = await store.record([
        { ...about, value: eventValue({ step: "intent", ...details, ...asked }) },
      ]);
      const end = async (step: ActionStep, rest: object): Promise<void> => {
        try {
          await store.record([{ ...about, intent, value: eventValue({ step, ...rest, ...asked }) }]);
        } catch (error) {
          const what = `${kind} is ${step}, but the event log has no outcome for its intent ${intent}`;
          log.warn({ kind, subject, intent, error: textOf(error) }, what);
        }
      };
      let answer: T;
      try {
        answer = await work();
      } catch (error) {
        // Nothing is known of an action that the store did not answer: its intent stays alone, as after a crash.
        if (!isRedriveError(error, "store_unavailable"))
          await end("failed", {
            ...outcome(undefined),
            error: safeLine(masked(isRedriveError(error) ? error.message : textOf(error))),
          });
        throw error;
      }
      await end("done", outcome(answer));
      return answer;
    },
  };
}
