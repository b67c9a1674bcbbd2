// The listeners for work that may have become due. The first one starts a watch on the log file that other processes
// write; the last one ends it.
import { basename, dirname, resolve } from "node:path";
import type { System } from "../../system/system.ts";
import { watchFile } from "../../system/watch.ts";
import { ring } from "../verbs.ts";

/** A set of listeners that also learns of the commits of other processes. */
export class WakeSet extends Set<() => void> {
  readonly #path: string;
  readonly #system: System;
  #unwatch: (() => void) | null = null;
  /** A call of the listeners is due, and whether the file has changed again since. */
  #expected = false;
  #changed = false;

  constructor(path: string, system: System) {
    super();
    this.#path = resolve(path);
    this.#system = system;
  }

  override add(listener: () => void): this {
    this.#unwatch ??= watchFile(dirname(this.#path), `${basename(this.#path)}-wal`, () => this.#expect());
    return super.add(listener);
  }

  override delete(listener: () => void): boolean {
    const had = super.delete(listener);
    if (this.size === 0) this.#stop();
    return had;
  }

  override clear(): void {
    super.clear();
    this.#stop();
  }

  /**
   * The file changes before its commit is visible: call a moment later, and once more to be sure; and again where it
   * changed meanwhile, because that may have been another commit.
   */
  #expect(): void {
    this.#changed = this.#expected;
    if (this.#expected) return;
    this.#expected = true;
    this.#system.after(1, () => ring(this));
    this.#system.after(3, () => {
      this.#expected = false;
      ring(this);
      if (this.#changed) this.#expect();
    });
  }

  #stop(): void {
    this.#unwatch?.();
    this.#unwatch = null;
  }
}
