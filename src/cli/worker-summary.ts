// Summarises what a worker has done in one line, and names the due jobs that it left.
import { COUNTED_MOST, type HeldBack } from "../operate/due-work.ts";
import type { WorkerCounts } from "../report/reporter.ts";
import { counted, grouped } from "./format.ts";

/** `12 runs: 10 completed, 1 retried, 1 dead`; rare outcomes appear only where they happened. */
export function runsText({ claimed, completed, retried, dead, released, cancelled }: WorkerCounts): string {
  return `${counted(claimed, "run")}: ${said({ completed, retried, dead }, { released, cancelled })}`;
}

/** The same with all outcomes, for a worker that ends. */
export function claimedText({ claimed, completed, retried, dead, released, cancelled }: WorkerCounts): string {
  return said({ claimed, completed, retried, dead, released }, { cancelled });
}

/** `10 completed, 1 dead`: the counts that are always shown, and those that are shown only where they are not zero. */
function said(always: Readonly<Record<string, number>>, ifAny: Readonly<Record<string, number>>): string {
  const all = [...Object.entries(always), ...Object.entries(ifAny).filter(([, count]) => count > 0)];
  return all.map(([name, count]) => `${grouped(count)} ${name}`).join(", ");
}

const TYPES_NAMED = 10;

function dueText(count: number): string {
  return count >= COUNTED_MOST ? counted(count, "or more due job") : counted(count, "due job");
}

/** A line for each reason that holds due jobs back. */
export function heldLines(held: readonly HeldBack[]): string[] {
  const lines = held.slice(0, TYPES_NAMED).map(({ by, kind, name, jobs }) => {
    const waits = jobs === 1 ? "waits" : "wait";
    if (by === "breaker")
      return `${dueText(jobs)} ${waits} for the breaker of ${name}; \`breakers list\` shows until when.`;
    if (by === "hold") return `${dueText(jobs)} ${waits} because ${name} asked to wait (Retry-After).`;
    return `${dueText(jobs)} ${waits} because the ${kind} ${name} is paused.`;
  });
  const more = held.length - TYPES_NAMED;
  return more > 0 ? [...lines, `The same goes for ${counted(more, "more cause")}.`] : lines;
}

/** A line for each type with due jobs that none of these files defines. */
export function unservedLines(unserved: Readonly<Record<string, number>>, files: readonly string[]): string[] {
  const types = Object.entries(unserved);
  const lines = types.slice(0, TYPES_NAMED).map(([type, count]) => {
    const jobs = dueText(count);
    const [have, they] = count === 1 ? ["has", "it stays"] : ["have", "they stay"];
    return `${jobs} of type ${type} ${have} no definition in ${files.join(", ")}: ${they} queued.`;
  });
  const more = types.length - TYPES_NAMED;
  return more > 0 ? [...lines, `The same goes for ${counted(more, "more type")}.`] : lines;
}
