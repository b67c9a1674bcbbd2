// Shows a heartbeat thread that its owner's event loop still turns, by a counter in shared memory. While the count
// moves, the thread sends heartbeats, however busy that loop is in between.

/** The owner's side: two numbers in memory, how often it showed itself, and how far its runs have started. */
export function openShared(): { readonly shared: SharedArrayBuffer; show(startedThrough: number): void } {
  const shared = new SharedArrayBuffer(16);
  const view = new Float64Array(shared);
  return {
    shared,
    show(startedThrough) {
      view[1] = startedThrough;
      view[0] = (view[0] as number) + 1;
    },
  };
}

/** The thread's side. */
export interface LivenessWatch {
  /** True once the owner has not counted for this long; asked before every heartbeat. */
  isStalled(): boolean;
  startedThrough(): number;
}

/** Watches an owner through the shared memory. */
export function watchLiveness(shared: SharedArrayBuffer, stallMs: number, monotonic: () => number): LivenessWatch {
  const view = new Float64Array(shared);
  let shown = -1;
  let shownAt = monotonic();
  return {
    isStalled() {
      const count = view[0] as number;
      if (count !== shown) {
        shown = count;
        shownAt = monotonic();
      }
      return monotonic() - shownAt > stallMs;
    },
    startedThrough: () => view[1] as number,
  };
}
