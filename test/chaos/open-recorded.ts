// Opens the store of a chaos run so that every call is written down before it is sent and after it is answered. It takes
// the place of src/open-store.ts in the copy of the library that chaos runs.
import { isRedriveError } from "../../src/core/errors.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { createSqliteStore } from "../../src/store/sqlite/index.ts";
import type { Pulse, PulseListener, PulseRequest, Store } from "../../src/store/store.ts";
import type { Verb } from "../../src/store/verb-facts.ts";
import { type FileScribe, ownScribe } from "./file-scribe.ts";
import { aheadSince } from "./store-clock.ts";
import { sabotaged } from "./sabotage.ts";

/** Opens `sqlite:PATH` or `postgres://…`, recorded. */
export function openStore(url: string): Store {
  const store = url.startsWith("sqlite:")
    ? createSqliteStore({ path: url.slice("sqlite:".length) })
    : createPostgresStore({ url });
  return recorded(sabotaged(store), ownScribe());
}

/** No beat is under way for longer. */
const BEAT_MOST_MS = 30_000;

type Call = (...args: never[]) => Promise<unknown>;

/** The store with a scribe beside it. */
function recorded(store: Store, scribe: FileScribe): Store {
  const { name, pulse, onWake, close, ...verbs } = store;
  const written = Object.entries(verbs).map(([verb, call]) => [verb, writtenDown(verb as Verb, call as Call, scribe)]);
  return {
    ...(Object.fromEntries(written) as typeof verbs),
    ...(pulse && { pulse: (request, listener) => recordedPulse(pulse, request, listener, scribe) }),
    name,
    onWake,
    close,
  };
}

function writtenDown(verb: Verb, call: Call, scribe: FileScribe): Call {
  return async (...args) => {
    const sentAt = Date.now();
    const open = scribe.sent(scribe.actor, verb, args as unknown as Parameters<Store[Verb]>);
    try {
      const answer = await call(...args);
      // Where the answer does not tell its time, the bound that accuses nobody wrongly: lost runs were listed by now at
      // the latest, everything else happened after it was sent.
      const { least, most } = aheadSince(sentAt);
      const latest = Date.now() + most;
      open?.answered(answer, verb === "expired" ? latest : sentAt + least, latest);
      return answer;
    } catch (error) {
      // An outage may have come after the effect; anything else is certain to have changed nothing.
      if (isRedriveError(error) && error.code !== "store_unavailable") open?.failed(error.code);
      else open?.lost();
      throw error;
    }
  };
}

/**
 * Beats leave from the store thread, where nobody can write them down. What is known: each carries a progress that was
 * shown before, and its answer names the store time at which it held the file.
 */
function recordedPulse(
  pulse: NonNullable<Store["pulse"]>,
  request: PulseRequest,
  listener: PulseListener,
  scribe: FileScribe,
): Pulse {
  const { worker, leaseMs } = request;
  const shown = [{ time: 0, through: 0 }];
  const started = pulse(request, {
    answer(answer) {
      // The machine's time at the earliest, by how far ahead the store may have been.
      const time = answer.now - aheadSince(Date.now() - BEAT_MOST_MS).most;
      const since = scribe.stampOf(time);
      while ((shown[1]?.time ?? Number.POSITIVE_INFINITY) < time) shown.shift();
      const startedThrough = shown[0]?.through ?? 0;
      const line = { worker, leaseMs, startedThrough, storeTime: answer.now };
      scribe.write(scribe.actor, "beat", "ok", { ...line, answer: answer.alive ? "alive" : "given_up" }, since);
      listener.answer(answer);
    },
    failure: (error) => listener.failure(error),
  });
  return {
    show(startedThrough) {
      if (startedThrough !== shown.at(-1)?.through) {
        scribe.write(scribe.actor, "beat", "invoke", { worker, leaseMs, startedThrough });
      }
      started.show(startedThrough);
      shown.push({ time: Date.now(), through: startedThrough });
    },
    stop: () => started.stop(),
  };
}
