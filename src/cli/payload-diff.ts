// The difference of two payloads, line by line, for people. Secrets are masked unless asked otherwise.
import { indentJson } from "../core/recovery/spaced-json.ts";
import { redactJson } from "../core/redact.ts";
import { safeText } from "../core/safe-text.ts";
import type { Paint } from "./paint.ts";

/** Lines around a change that are shown. */
const AROUND = 2;
/** Larger texts are compared from both ends only. */
const CELLS_MOST = 1_000_000;

/** A payload for people: a line for every field, every token as it is stored. */
export function shownPayload(payload: string, reveal: boolean): string {
  return safeText(indentJson(reveal ? payload : redactJson(payload)));
}

/** The lines that differ, with a few around them; empty where the shown texts are equal. */
export function payloadDiff(before: string, after: string, paint: Paint, reveal: boolean): string {
  const lines = diffOf(shownPayload(before, reveal).split("\n"), shownPayload(after, reveal).split("\n"));
  const isNear = (at: number): boolean =>
    lines.slice(Math.max(0, at - AROUND), at + AROUND + 1).some(({ mark }) => mark !== " ");
  const shown: string[] = [];
  let skipped = false;
  lines.forEach(({ mark, text }, at) => {
    if (!isNear(at)) {
      skipped = true;
      return;
    }
    if (skipped && shown.length > 0) shown.push("  …\n");
    skipped = false;
    const line = `${mark} ${text}`;
    shown.push(`${mark === " " ? line : paint(mark === "+" ? "green" : "red", line)}\n`);
  });
  return shown.join("");
}

interface DiffLine {
  readonly mark: " " | "-" | "+";
  readonly text: string;
}

function diffOf(before: readonly string[], after: readonly string[]): DiffLine[] {
  let [head, tail] = [0, 0];
  const least = Math.min(before.length, after.length);
  while (head < least && before[head] === after[head]) head += 1;
  while (tail < least - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  const same = (lines: readonly string[]): DiffLine[] => lines.map((text) => ({ mark: " ", text }));
  return [
    ...same(before.slice(0, head)),
    ...middleOf(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ...same(before.slice(before.length - tail)),
  ];
}

/** The shortest way from one list of lines to the other. */
function middleOf(before: readonly string[], after: readonly string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ mark: "-", text });
  const added = (text: string): DiffLine => ({ mark: "+", text });
  if (before.length * after.length > CELLS_MOST) return [...before.map(removed), ...after.map(added)];
  const common: number[][] = Array.from(
    { length: before.length + 1 },
    () => Array(after.length + 1).fill(0) as number[],
  );
  const at = (i: number, j: number): number => common[i]?.[j] ?? 0;
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      (common[i] as number[])[j] = before[i] === after[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      lines.push({ mark: " ", text: before[i++] as string });
      j += 1;
    } else if (j >= after.length || (i < before.length && at(i + 1, j) >= at(i, j + 1)))
      lines.push(removed(before[i++] as string));
    else lines.push(added(after[j++] as string));
  }
  return lines;
}
