// Measures how fast the checker reads: events are made in small heaps beforehand, so that only reading is timed. Processor
// time is told beside wall time, because a busy machine stretches only the latter.
import { Checker } from "../support/history/check.ts";
import type { HistoryEvent, Report } from "../support/history/event.ts";
import { GoodHistory } from "./good-history.ts";

const HEAP = 10_000;
/** A little less than what a job of a good history brings. */
const EVENTS_PER_JOB = 13;

/** How long reading took; `cpuSeconds` counts the garbage collector's threads as well. */
export interface ReadingSpeed {
  readonly events: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly report: Report;
}

/** Reads at least this many events and says how long that took. */
export function readingSpeed(wanted: number): ReadingSpeed {
  const history = new GoodHistory(1, Math.ceil(wanted / EVENTS_PER_JOB));
  const checker = new Checker();
  let heap: HistoryEvent[] = [];
  let ms = 0;
  let cpuMicros = 0;
  const timed = <T>(work: () => T): T => {
    const [from, cpu] = [performance.now(), process.cpuUsage()];
    const result = work();
    const { user, system } = process.cpuUsage(cpu);
    ms += performance.now() - from;
    cpuMicros += user + system;
    return result;
  };
  const read = (): void => {
    timed(() => {
      for (const event of heap) checker.read(event);
    });
    heap = [];
  };
  for (const event of history.events()) if (heap.push(event) === HEAP) read();
  read();
  const dump = history.dump();
  const report = timed(() => checker.finish(dump));
  return { events: report.events, seconds: ms / 1000, cpuSeconds: cpuMicros / 1e6, report };
}
