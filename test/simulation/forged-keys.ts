// Forged histories about keys that stand for one job only while it waits or runs (R13), and about the bodies that they
// give to waiting jobs (R3). Each must be flagged with its rule.
import type { Forge } from "./forge.ts";
import type { Forgery } from "./forged-jobs.ts";

const MODES = ["queued", "active", "replace", "debounce"] as const;
type Mode = (typeof MODES)[number];

/** Forgeries about keys. */
export const KEY_FORGERIES: readonly Forgery[] = [
  ...MODES.map(
    (mode): Forgery => [
      "R13",
      `two jobs are created for one key that is ${mode} while the first waits`,
      (f) => (first(f, mode), first(f, mode, "b"), finish(f, "a"), finish(f, "b")),
    ],
  ),
  ...MODES.map(
    (mode): Forgery => [
      "R13",
      `two jobs are created for one key that is ${mode} while the first waits for its next try`,
      (f) => (first(f, mode), f.settle(f.claim("a"), "retry"), first(f, mode, "b"), finish(f, "a"), finish(f, "b")),
    ],
  ),
  ["R13", "the holder of a key still waits at the end", (f) => (first(f, "queued"), first(f, "queued", "b"))],
  [
    "R13",
    "a second job is created while the holder of a key that is active runs",
    (f) => (first(f, "active"), again(f, "active")),
  ],
  ["R13", "a running holder counts as one that waits", (f) => named(f, "queued", "duplicate")],
  ["R13", "a running holder is replaced", (f) => named(f, "replace", "replaced")],
  ["R13", "a running holder is debounced", (f) => named(f, "debounce", "replaced")],
  ...(["queued", "active"] as const).map(
    (mode): Forgery => [
      "R13",
      `a completed job is named for a key that is ${mode}`,
      (f) => (first(f, mode), finish(f, "a"), answer(f, mode, "duplicate", "a")),
    ],
  ),
  [
    "R13",
    "a dead job is replaced",
    (f) => (first(f, "replace"), f.settle(f.claim("a"), "dead"), answer(f, "replace", "replaced", "a")),
  ],
  ["R13", "a job that lost its key is named for it", (f) => namedOld(f)],
  [
    "R13",
    "a job of another key is named",
    (f) => (first(f, "queued"), f.whole("c"), answer(f, "queued", "duplicate", "c")),
  ],
  [
    "R13",
    "a key that is queued refuses another body",
    (f) => (first(f, "queued"), answer(f, "queued", "conflict", "a")),
  ],
  [
    "R13",
    "a key that replaces calls it a duplicate",
    (f) => (first(f, "replace"), answer(f, "replace", "duplicate", "a")),
  ],
  ["R13", "a key that is active replaces", (f) => (first(f, "active"), answer(f, "active", "replaced", "a"))],
  ["R3", "a claim has the body from before it was replaced", (f) => (replaced(f), finish(f, "a"))],
  ["R3", "a job is found with the body from before it was replaced", (f) => foundWith(f, 7)],
  ["R3", "a job is found with a body that was called a duplicate", (f) => foundWithDuplicate(f)],
  ["R3", "a run has another body than its claim", (f) => ranWith(f, 8)],
];

/** A job under the key. */
function first(f: Forge, mode: Mode, id = "a"): void {
  f.enqueue(id, { key: "mail/k", mode });
}

function finish(f: Forge, id: string): void {
  f.settle(f.claim(id), "complete");
}

/** Somebody asks for the key with another body, and this is the answer. */
function answer(f: Forge, mode: Mode, said: string, names: string, payloadHash = 8): void {
  const asked = `asked-${f.scribe.events.length}`;
  const sent = { job: asked, key: "mail/k", mode, payloadHash, delayMs: 0 };
  f.call("enqueue", sent, "ok", { job: names, asked, answer: said });
}

function again(f: Forge, mode: Mode): void {
  const lease = f.claim("a");
  first(f, mode, "b");
  f.settle(lease, "complete");
  finish(f, "b");
}

function named(f: Forge, mode: Mode, said: string): void {
  first(f, mode);
  const lease = f.claim("a");
  answer(f, mode, said, "a");
  f.settle(lease, "complete");
}

function namedOld(f: Forge): void {
  first(f, "queued");
  const lease = f.claim("a");
  first(f, "queued", "b");
  f.settle(lease, "retry");
  answer(f, "queued", "duplicate", "a");
  finish(f, "a");
  finish(f, "b");
}

function replaced(f: Forge): void {
  first(f, "replace");
  answer(f, "replace", "replaced", "a");
}

function foundWith(f: Forge, payloadHash: number): void {
  replaced(f);
  f.settle(f.claim("a", { payloadHash: 8 }), "complete");
  f.job("a").payloadHash = payloadHash;
}

function foundWithDuplicate(f: Forge): void {
  first(f, "queued");
  answer(f, "queued", "duplicate", "a");
  finish(f, "a");
  f.job("a").payloadHash = 8;
}

function ranWith(f: Forge, payloadHash: number): void {
  first(f, "debounce");
  const lease = f.claim("a");
  f.scribe.write("forger", "run", "invoke", { ...lease, payloadHash });
  f.settle(lease, "complete");
}
