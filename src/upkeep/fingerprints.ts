// Gives stored failures new fingerprints after an upgrade that changed the rules, in small steps. A note in the store says
// which version of the rules has been applied and how far, so that the workers of a fleet share the work and a restarted
// one continues it. Where a pass changed something, another follows a day later, for what workers of the version before
// wrote during the upgrade.
import { FINGERPRINT_VERSION } from "../core/fingerprint.ts";
import { fieldsFrom } from "../core/options.ts";
import { fingerprintOf } from "../core/verdict.ts";
import type { Cell, FailureQuery, KeptFailure, NewFingerprint, Store } from "../store/store.ts";
import type { System } from "../system/system.ts";
import type { Service } from "./upkeep.ts";

/** The kind of the note; there is one, without a name. */
export const FINGERPRINT_CELLS = "fingerprints";

/** Jobs read in one step. */
const STEP = 200;
/**
 * The rest between two steps, and after a step that another worker did as well. A step is up to nine statements: an idle
 * worker sends about four a second more during a pass, and 1,000,000 jobs take about three hours.
 */
const REST_MS = 2_000;
const BUSY_MS = 60_000;
/** How often a worker looks whether there is something to do. */
const EVERY_MS = 600_000;
/** The pause between two passes. */
const NEXT_PASS_MS = 86_400_000;
/** A row that another transaction holds is tried again so often. */
const TRIES = 3;

/** How far the fleet is. */
interface Progress {
  readonly version: number;
  /** The number of the job after which to continue; null between two passes. */
  readonly after: number | null;
  /** Failures that needed a new fingerprint in this pass, or the one before. After a pass without any, all is done. */
  readonly changed: number;
}

type Needs = Pick<Store, "cells" | "setCells" | "failures" | "setFingerprints">;

/** The service. Its first step is some time after the start, so that a short run does none. */
export function fingerprintService({ store, system }: { readonly store: Needs; readonly system: System }): Service {
  return {
    name: "fingerprints",
    firstMs: BUSY_MS * (0.5 + system.random()),
    step: () => renewFingerprints(store),
  };
}

/** One step: a page of failures; answers how long to wait before the next. */
export async function renewFingerprints(store: Needs, limit = STEP): Promise<number> {
  const { cells, now } = await store.cells([{ kind: FINGERPRINT_CELLS }]);
  const [cell] = cells;
  const { version, after, changed } = progressFrom(cell);
  // A newer program knows better rules.
  if (version > FINGERPRINT_VERSION) return EVERY_MS;
  if (after === null && (changed === 0 || now - (cell?.at ?? now) < NEXT_PASS_MS)) return EVERY_MS;
  const page = await renewPage(store, { after: after ?? 0, limit });
  const sum = (after === null ? 0 : changed) + page.changed;
  const value = JSON.stringify({ version: FINGERPRINT_VERSION, after: page.next, changed: sum } satisfies Progress);
  const change = { kind: FINGERPRINT_CELLS, name: "", holder: "", version: cell?.version ?? 0, value };
  const [isOurs = false] = await store.setCells([change]);
  if (!isOurs) return BUSY_MS;
  return page.next === null ? EVERY_MS : REST_MS;
}

/** Rows that stay as they are after the last try count as changed, so that another pass comes for them. */
async function renewPage(
  store: Needs,
  query: FailureQuery,
): Promise<{ readonly next: number | null; readonly changed: number }> {
  for (let [tries, changed] = [1, 0]; ; tries++) {
    const { items, next } = await store.failures(query);
    const changes = items.flatMap(changeOf);
    const done = changes.length === 0 ? 0 : await store.setFingerprints(changes);
    if (done === changes.length || tries === TRIES) return { next, changed: changed + changes.length };
    changed += done;
  }
}

function changeOf({ of, seq, at, failure }: KeptFailure): NewFingerprint[] {
  const [was, fingerprint] = [failure.fingerprint, fingerprintOf(failure)];
  // A failure without a fingerprint is a text that cannot be read.
  return was === "" || was === fingerprint ? [] : [{ of, seq, at, was, fingerprint }];
}

/** The note; from the beginning where there is none, or one of older rules. */
function progressFrom(cell: Cell | undefined): Progress {
  const { version, after, changed } = fieldsFrom(cell?.value ?? "") as Partial<Progress>;
  const isNote = Number.isSafeInteger(version) && Number.isSafeInteger(changed) && after !== undefined;
  if (!isNote || (version ?? 0) < FINGERPRINT_VERSION) return { version: FINGERPRINT_VERSION, after: 0, changed: 0 };
  return { version: version ?? 0, after, changed: changed ?? 0 };
}
