// The first page of an operator: health, bounded counts, the last hour, and what needs attention. Every question is bounded,
// so that it answers as fast with a million jobs as with ten.
import { MINUTE } from "../../core/flow.ts";
import { type State, STATES } from "../../core/job.ts";
import { isOpenRun } from "../../core/recovery/run.ts";
import { flowTrend } from "../../operate/cause-trend.ts";
import { COUNTED_TO } from "../../operate/counts.ts";
import { isoTime } from "../../operate/json-form.ts";
import { breakerForm, healthForm, pauseForm, wholeRunForm } from "../../operate/view-forms.ts";
import type { Redrive } from "../../redrive-api.ts";
import { livingAmong } from "../../services/holding.ts";
import type { Store } from "../../store/store.ts";
import { causeDocument } from "./recovery.ts";

const CAUSES = 5;
const SHOWN_RUNS = 50;

/** Reads all of it. */
export async function readOverview(redrive: Redrive): Promise<object> {
  const { store } = redrive;
  const { now } = await store.control();
  const from = Math.max(0, now - 59 * MINUTE);
  const [health, jobs, flow, causes, services, pauses, runs, workers, oldestDueMs, releases] = await Promise.all([
    redrive.health(),
    store.count(COUNTED_TO),
    flowTrend(store, { from, until: now + 1, stepMs: MINUTE }),
    redrive.causes.list({ limit: CAUSES }),
    redrive.breakers.list(),
    redrive.pauses(),
    redrive.redrives.list({ limit: SHOWN_RUNS }),
    store.workers(),
    oldestDue(store, now),
    store.events({ kind: "release.seen", from, limit: 20 }),
  ]);
  const alive = livingAmong(workers, now);
  const open = runs.items.filter(isOpenRun);
  const broken = services.filter(({ state }) => state !== "closed");
  const byRelease = new Map<string, number>();
  for (const { release } of alive) byRelease.set(release ?? "", (byRelease.get(release ?? "") ?? 0) + 1);
  return {
    health: healthForm(health),
    jobs: Object.fromEntries(
      STATES.map((state: State) => [state, { n: jobs[state], atLeast: jobs[state] >= COUNTED_TO }]),
    ),
    oldestDueMs,
    flow: flow.map((step) => ({ ...step, at: isoTime(step.at) })),
    causes: causes.items.map(causeDocument),
    services: broken.map(breakerForm),
    pauses: pauses.map(pauseForm),
    runs: open.map(wholeRunForm),
    workers: {
      alive: alive.length,
      givenUp: workers.filter(({ givenUp }) => givenUp).length,
      releases: Object.fromEntries(byRelease),
    },
    releases: releases.items.map(({ subject, at }) => ({ release: (subject ?? "").slice(8), at: isoTime(at) })),
    attention: [
      ...health.reasons.map(({ text, subject }) => ({ kind: "health", text, subject })),
      ...causes.items
        .filter(({ state }) => state === "regressed")
        .map(({ fingerprint, says }) => ({ kind: "regressed", text: says, subject: `cause:${fingerprint}` })),
      ...runs.items
        .filter(
          ({ state, endedAt }) =>
            state === "paused" || (state === "stopped" && (endedAt ?? 0) > now - 24 * 60 * MINUTE),
        )
        .map(({ id, state, reason }) => ({
          kind: `redrive_${state}`,
          text: reason ?? state,
          subject: `redrive:${id}`,
        })),
    ],
  };
}

/** How long the oldest due job waits: of the lanes with due work, the first ones. */
async function oldestDue(store: Pick<Store, "lanes">, now: number): Promise<number | null> {
  const { lanes } = await store.lanes(null, 1_000);
  const oldest = lanes.reduce((least: number | null, { headRunAt: at }) => Math.min(least ?? at, at), null);
  return oldest === null ? null : Math.max(0, now - oldest);
}
