// The live streams of a server. One poller for the process reads the newest events and a few signs of change once a second
// while anyone listens, and tells every stream what to ask for again; rows of the event log follow as events of their own.
import { MINUTE, minuteOf } from "../core/flow.ts";
import { jsonText, isoTime } from "../operate/json-form.ts";
import { textOf } from "../core/failure.ts";
import type { Redrive } from "../redrive-api.ts";
import type { LoggedEvent, Store } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import { gate } from "./rates.ts";
import type { WireSubject } from "./wire.ts";

/** Shows a row of the event log to one reader. */
export type RowForm = (event: LoggedEvent) => object;

/** The streams of a server. */
export interface EventStreams {
  /** Opens a stream that goes on after this event, or begins now; it ends with the signal. */
  open(after: number | null, form: RowForm, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
  /** How many are open. */
  readonly count: number;
  /** Ends all streams. */
  close(): void;
}

const POLL_MS = 1_000;
const HEARTBEAT_MS = 15_000;
const STREAMS_MOST = 100;
const ROWS = 200;
/** Bytes that may wait for a reader that does not read; then its stream ends, and it comes back with its last id. */
const BEHIND_MOST = 1_048_576;

interface Stream {
  /** The number of the last event that was sent. */
  seen: number;
  /** True until it was told of everything that may have changed while its reader was away. */
  isBack: boolean;
  readonly form: RowForm;
  send(text: string): void;
  end(): void;
}

/** The streams of a Redrive. */
export function openStreams({
  redrive,
  system,
  log,
}: {
  readonly redrive: Pick<Redrive, "store">;
  readonly system: System;
  readonly log: Log;
}): EventStreams {
  const { store } = redrive;
  const streams = new Set<Stream>();
  const open = gate(STREAMS_MOST, "event streams");
  let polling: AbortController | null = null;
  const begin = (): void => {
    if (polling) return;
    polling = new AbortController();
    void poll({ store, system, log, streams, until: polling.signal });
  };
  const leave = (): void => {
    if (streams.size > 0) return;
    polling?.abort();
    polling = null;
  };
  return {
    get count() {
      return open.open;
    },
    async open(after, form, signal) {
      const out = open.enter();
      try {
        const last = await newest(store);
        // A number that the log has not reached is that of another store: the reader begins now.
        const seen = Math.min(after ?? last, last);
        const { stream, text } = openStream({ seen, isBack: after !== null, form, signal }, () => {
          streams.delete(stream);
          out();
          leave();
        });
        if (signal.aborted) stream.end();
        streams.add(stream);
        begin();
        return text;
      } catch (error) {
        out();
        throw error;
      }
    },
    close() {
      for (const stream of streams) stream.end();
    },
  };
}

async function newest(store: Pick<Store, "events">): Promise<number> {
  return (await store.events({ limit: 1 })).items[0]?.seq ?? 0;
}

function openStream(
  { seen, isBack, form, signal }: Pick<Stream, "seen" | "isBack" | "form"> & { readonly signal: AbortSignal },
  onEnd: () => void,
): { readonly stream: Stream; readonly text: ReadableStream<Uint8Array> } {
  const encoder = new TextEncoder();
  let controller: ReadableStreamDefaultController<Uint8Array>;
  let isOpen = true;
  const end = (): void => {
    if (!isOpen) return;
    isOpen = false;
    signal.removeEventListener("abort", end);
    onEnd();
    try {
      controller.close();
    } catch {
      // The reader has left before.
    }
  };
  const text = new ReadableStream<Uint8Array>(
    {
      start(own) {
        controller = own;
        own.enqueue(encoder.encode(`retry: 1000\nid: ${seen}\n\n`));
      },
      cancel: end,
    },
    new ByteLengthQueuingStrategy({ highWaterMark: BEHIND_MOST }),
  );
  const stream: Stream = {
    seen,
    isBack,
    form,
    end,
    send(said) {
      if (!isOpen) return;
      if ((controller.desiredSize ?? 0) <= 0) return end();
      controller.enqueue(encoder.encode(said));
    },
  };
  signal.addEventListener("abort", end);
  return { stream, text };
}

/** What the poller saw last. */
interface Seen {
  readonly control: number;
  readonly workers: string;
  readonly cells: number;
  readonly flow: string;
  readonly failures: number;
}

interface Polling {
  readonly store: Store;
  readonly system: System;
  readonly log: Log;
  readonly streams: ReadonlySet<Stream>;
  readonly until: AbortSignal;
}

/** Looks once a second, or sooner when work became due, until no stream is left. */
async function poll({ store, system, log, streams, until }: Polling): Promise<void> {
  let seen: Seen | null = null;
  const rows = openRows(store);
  let saidMs = system.monotonic();
  let isSaid = false;
  while (!until.aborted) {
    try {
      const { seen: next, now, of } = await look(store, seen);
      seen = next;
      const news = await rows.next();
      for (const stream of streams) await tell({ store, stream, news, changed: of, now });
      isSaid = false;
    } catch (error) {
      if (!isSaid) log.warn({ error: textOf(error) }, "the event streams could not read the store; they go on trying");
      isSaid = true;
    }
    if (system.monotonic() - saidMs >= HEARTBEAT_MS) {
      saidMs = system.monotonic();
      for (const stream of streams) stream.send(": alive\n\n");
    }
    await system.sleep(POLL_MS, until);
  }
}

/** Reads the signs; what differs from the last look has changed. */
async function look(
  store: Store,
  last: Seen | null,
): Promise<{ readonly seen: Seen; readonly now: number; readonly of: ReadonlySet<WireSubject> }> {
  const [{ version, now }, { signs }] = await Promise.all([store.control(), store.lanes(null, 1)]);
  const points = await store.trend({ from: Math.max(0, minuteOf(now) - MINUTE), until: now + 1, stepMs: MINUTE });
  const failures = points.reduce((sum, { counts }) => sum + (counts["retried"] ?? 0) + (counts["dead"] ?? 0), 0);
  const seen: Seen = {
    control: version,
    workers: signs ? `${signs.workers} ${signs.newest} ${signs.lapseAt === 0}` : await workersSign(store),
    cells: signs?.cells ?? 0,
    flow: JSON.stringify(points),
    failures,
  };
  const of = new Set<WireSubject>();
  if (last) {
    if (seen.control !== last.control) of.add("control");
    if (seen.workers !== last.workers) of.add("workers");
    if (seen.cells !== last.cells) for (const each of ["redrives", "schedules"] as const) of.add(each);
    if (seen.flow !== last.flow) for (const each of ["flow", "jobs"] as const) of.add(each);
    if (seen.failures !== last.failures) of.add("causes");
  }
  return { seen, now, of };
}

async function workersSign(store: Store): Promise<string> {
  return (await store.workers()).map(({ id, givenUp }) => `${id}${givenUp ? "-" : ""}`).join(" ");
}

/** What the kinds of events are about. */
const ABOUT: readonly (readonly [prefix: string, of: WireSubject])[] = [
  ["cause.", "causes"],
  ["redrive.", "redrives"],
  ["jobs.", "jobs"],
  ["job.", "jobs"],
  ["deadLetters.", "jobs"],
  ["dlq.", "causes"],
  ["pause", "control"],
  ["resume", "control"],
  ["breaker.", "control"],
  ["schedule", "schedules"],
  ["worker.", "workers"],
  ["release.", "workers"],
];

const EVERYTHING: readonly WireSubject[] = [
  "causes",
  "control",
  "events",
  "flow",
  "jobs",
  "redrives",
  "schedules",
  "workers",
];

/** The rows that came since the last look, read once for all streams; the number of the last row before them. */
interface News {
  readonly after: number;
  readonly items: readonly LoggedEvent[];
}

function openRows(store: Pick<Store, "events">): { next(): Promise<News> } {
  let last: number | null = null;
  return {
    async next() {
      last ??= await newest(store);
      const { items } = await store.events({ oldest: true, cursor: String(last), limit: ROWS });
      const news = { after: last, items };
      last = items.at(-1)?.seq ?? last;
      return news;
    },
  };
}

interface Telling {
  readonly store: Pick<Store, "events">;
  readonly stream: Stream;
  readonly news: News;
  readonly changed: ReadonlySet<WireSubject>;
  readonly now: number;
}

/** Sends a stream the rows it has not had, and one hint about all of them. */
async function tell({ store, stream, news, changed, now }: Telling): Promise<void> {
  const of = new Set(stream.isBack ? EVERYTHING : changed);
  let text = "";
  const flush = (): void => {
    if (text !== "") stream.send(text);
    text = "";
  };
  const add = (event: LoggedEvent): void => {
    if (event.seq <= stream.seen) return;
    of.add("events");
    for (const [prefix, subject] of ABOUT) if (event.kind.startsWith(prefix)) of.add(subject);
    text += `id: ${event.seq}\nevent: row\ndata: ${jsonText(stream.form(event))}\n\n`;
    stream.seen = event.seq;
  };
  try {
    // A reader that was away reads what it missed, up to where the others are.
    while (stream.seen < news.after) {
      const { items } = await store.events({ oldest: true, cursor: String(stream.seen), limit: ROWS });
      for (const event of items) add(event);
      // Rows may have been deleted meanwhile, because they were too old.
      if (items.length === 0) stream.seen = news.after;
      if (text.length > BEHIND_MOST / 4) flush();
    }
    for (const event of news.items) add(event);
    stream.isBack = false;
    if (of.size === 0) return;
    const data = JSON.stringify({ of: [...of].toSorted(), now: isoTime(now) });
    text += `id: ${stream.seen}\nevent: changed\ndata: ${data}\n\n`;
  } finally {
    // Also where the store fails in between: what was read counts as sent.
    flush();
  }
}
