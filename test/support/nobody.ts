// What a test does without the rights of root, which may read and write everything.

/** On Linux and macOS. */
const NOBODY = 65_534;

/** Runs something at once as a user without rights; as the user of the test where that is not root. */
export function asNobody<T>(act: () => T): T {
  if (process.getuid?.() !== 0) return act();
  process.seteuid?.(NOBODY);
  try {
    return act();
  } finally {
    process.seteuid?.(0);
  }
}
