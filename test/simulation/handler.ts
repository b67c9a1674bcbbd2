// The pretend handler: takes random virtual time, sometimes longer than a lease, and ends in every way a run can end.
import type { Failure, FailureClass } from "../../src/core/job.ts";
import type { Outcome } from "../../src/core/verdict.ts";
import type { ClaimedJob } from "../../src/store/store.ts";
import { hashText } from "../support/history/event.ts";
import type { Scene } from "./scene.ts";
import type { Actor } from "./world.ts";

const RETRYABLE: readonly FailureClass[] = ["transient", "network", "system", "rate_limited", "timeout"];
const FINAL: readonly FailureClass[] = ["permanent", "validation", "authentication"];

/** How this run ends. Once the world is calm, runs are short and most of them succeed. */
export async function pretend(actor: Actor, scene: Scene, job: ClaimedJob, signal: AbortSignal): Promise<Outcome> {
  const { dice, system } = actor;
  if (job.cancelRequested) return { kind: "cancelled" };
  const calm = scene.world.now >= scene.calmAt;
  const long = !calm && dice.chance(0.05);
  await system.sleep(long ? dice.between(1, 2) * scene.settings.leaseMs : dice.between(1, 300), signal);
  if (signal.aborted) {
    if (signal.reason === "cancel") return { kind: "cancelled" };
    return { kind: "released", reason: "shutdown", delayMs: 0 };
  }
  // Some jobs fail for good again and again, so that generations follow each other.
  const cursed = !calm && hashText(job.id) % 5 === 0;
  if (cursed && dice.chance(0.8)) return { kind: "failed", failure: failureOf(dice.pick(FINAL)) };
  const roll = dice.random() * (calm ? 0.5 : 1);
  if (roll < 0.6) return { kind: "completed", result: JSON.stringify(job.id) };
  if (roll < 0.86) return { kind: "failed", failure: failureOf(dice.pick(RETRYABLE)) };
  if (roll < 0.92) return { kind: "failed", failure: failureOf(dice.pick(FINAL)) };
  const reason = dice.pick(["snooze", "rate_limit", "breaker"] as const);
  return { kind: "released", reason, delayMs: dice.between(0, 800) };
}

function failureOf(kind: FailureClass): Failure {
  const message = `The pretend handler failed as ${kind}`;
  return { class: kind, severity: "warning", name: "PretendError", message, stack: null, fingerprint: kind };
}
