// Lists in pages: the first page is live, further ones are read when they are asked for. A page may be empty and go on:
// the store looks at so many rows a question, and says how far it looked.
import { useEffect, useState } from "preact/hooks";
import type { WireSubject } from "../src/http/client.ts";
import { clock, now } from "./format.ts";
import { useLoad } from "./live.ts";
import { saidOf } from "./server.ts";

interface PageOf<T> {
  readonly items: readonly T[];
  readonly next: string | null;
  readonly seenTo?: string | undefined;
}

/** A list. */
export interface Pages<T> {
  readonly first: readonly T[] | null;
  readonly rest: readonly T[];
  readonly next: string | null;
  readonly seenTo: string | null;
  readonly error: string | null;
  readonly again: () => void;
  readonly more: () => void;
}

/** Asks for the first page and keeps it fresh; `more` asks for the next. */
export function usePages<T>(
  key: string,
  ask: (cursor: string | null, options: { readonly signal?: AbortSignal }) => Promise<PageOf<T>>,
  of: readonly WireSubject[],
): Pages<T> {
  const head = useLoad(key, (options) => ask(null, options), of);
  const [tail, setTail] = useState<{ pages: readonly PageOf<T>[]; error: string | null }>({ pages: [], error: null });
  useEffect(() => setTail({ pages: [], error: null }), [key]);
  const last = tail.pages.at(-1) ?? head.data;
  const more = async (): Promise<void> => {
    if (!last?.next) return;
    try {
      const page = await ask(last.next, {});
      setTail(({ pages }) => ({ pages: [...pages, page], error: null }));
    } catch (error) {
      setTail(({ pages }) => ({ pages, error: saidOf(error) }));
    }
  };
  return {
    first: head.data?.items ?? null,
    rest: tail.pages.flatMap(({ items }) => items),
    next: last?.next ?? null,
    seenTo: last?.seenTo ?? null,
    error: tail.error ?? head.error,
    again: head.again,
    more: () => void more(),
  };
}

/** How far the list goes, and the way on. */
export function More({ next, more, seenTo = null }: { next: string | null; more: () => void; seenTo?: string | null }) {
  if (next === null) return null;
  return (
    <p class="more-rows">
      {seenTo !== null && <span class="dim">Looked back to {clock(Date.parse(seenTo), now.value)}. </span>}
      <button type="button" onClick={more}>
        {seenTo === null ? "more" : "look further"}
      </button>
    </p>
  );
}
