// The one error that says that a file itself is bad. Its class is given by the rules in jobs.ts.

/** A file that no second try can make readable. */
export class BrokenFileError extends Error {
  override readonly name = "BrokenFileError";
}
