// What changes on the server reaches the page as hints; each view asks again for what it shows, once a second at most. A
// hidden page listens to nothing, and asks for everything when it is seen again.
import { effect, signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { WireChanged, WireSubject } from "../src/http/client.ts";
import { ahead, now, storeNow } from "./format.ts";
import { base, saidOf, session } from "./server.ts";

/** Whether hints come. */
export const live = signal<"live" | "paused" | "lost">("lost");
/** True stops asking until it is false again: the person wants the page to stand still. */
export const isPaused = signal(false);

type Listener = (of: readonly WireSubject[] | null) => void;
const listeners = new Set<Listener>();
const tell = (of: readonly WireSubject[] | null): void => {
  for (const listener of listeners) listener(of);
};

let source: EventSource | null = null;

function listen(): void {
  const isWanted = document.visibilityState === "visible" && Boolean(session.value?.role) && !isPaused.value;
  if (!isWanted) {
    source?.close();
    source = null;
    if (isPaused.value) live.value = "paused";
    return;
  }
  if (source) return;
  source = new EventSource(`${base}api/v1/events/stream`);
  source.addEventListener("open", () => {
    live.value = "live";
    tell(null);
  });
  source.addEventListener("changed", ({ data }) => {
    const said = JSON.parse(data as string) as WireChanged;
    ahead.value = Date.parse(said.now) - Date.now();
    tell(said.of);
  });
  source.addEventListener("error", () => (live.value = "lost"));
}

/** Begins to listen. */
export function startLive(): void {
  effect(listen);
  document.addEventListener("visibilitychange", listen);
  setInterval(() => {
    if (document.visibilityState === "visible") now.value = storeNow();
  }, 1_000);
  // A stream that the browser has given up is opened again.
  setInterval(() => {
    if (source?.readyState !== EventSource.CLOSED) return;
    source = null;
    listen();
  }, 3_000);
}

/** What a view knows of what it asked for. */
export interface Loaded<T> {
  readonly data: T | null;
  readonly error: string | null;
  readonly status: number | null;
  /** Asks again now. */
  readonly again: () => void;
}

const kept = new Map<string, unknown>();
const KEPT = 60;
const LEAST_MS = 1_000;

function remember(key: string, value: unknown): void {
  kept.delete(key);
  kept.set(key, value);
  const [oldest] = kept.keys();
  if (kept.size > KEPT && oldest !== undefined) kept.delete(oldest);
}

interface Asking {
  timer: ReturnType<typeof setTimeout> | undefined;
  last: number;
  isOpen: boolean;
  isStale: boolean;
}

/**
 * Asks for something and keeps it fresh: when one of the subjects has changed, and every so often. What came last stays
 * while an answer is missing. No key, no question.
 */
export function useLoad<T>(
  key: string | null,
  ask: (options: { readonly signal: AbortSignal }) => Promise<T>,
  of: readonly WireSubject[] = [],
  everyMs = 15_000,
): Loaded<T> {
  const [, turn] = useState(0);
  const held = useRef<{ key: string | null; data: T | null; error: string | null; status: number | null }>(null);
  if (held.current?.key !== key)
    held.current = { key, data: key === null ? null : ((kept.get(key) as T) ?? null), error: null, status: null };
  const asks = useRef(ask);
  asks.current = ask;
  const again = useRef(() => undefined as void);
  useEffect(() => {
    if (key === null) return undefined;
    const controller = new AbortController();
    const state: Asking = { timer: undefined, last: 0, isOpen: false, isStale: false };
    const run = async (): Promise<void> => {
      state.isOpen = true;
      state.isStale = false;
      state.last = Date.now();
      const next = {
        key,
        data: held.current?.data ?? null,
        error: null as string | null,
        status: null as number | null,
      };
      try {
        next.data = (await asks.current({ signal: controller.signal })) as T & {};
        remember(key, next.data);
      } catch (error) {
        next.error = saidOf(error);
        next.status = (error as { status?: number }).status ?? 0;
      }
      state.isOpen = false;
      if (controller.signal.aborted) return;
      held.current = next;
      turn((n) => n + 1);
      if (state.isStale) soon();
    };
    const soon = (): void => {
      state.isStale = true;
      if (state.isOpen) return;
      clearTimeout(state.timer);
      state.timer = setTimeout(() => void run(), Math.max(0, state.last + LEAST_MS - Date.now()));
    };
    const listener: Listener = (changed) => {
      if (!isPaused.value && (changed === null || changed.some((subject) => of.includes(subject)))) soon();
    };
    listeners.add(listener);
    const beat = setInterval(() => {
      if (document.visibilityState === "visible" && !isPaused.value) soon();
    }, everyMs);
    again.current = () => void run();
    void run();
    return () => {
      controller.abort();
      listeners.delete(listener);
      clearTimeout(state.timer);
      clearInterval(beat);
    };
  }, [key]);
  return { ...held.current, again: () => again.current() };
}
