// The version of the package, for `--version` and for metrics; a test compares it with package.json.

/** The version of the package. */
export const VERSION = "0.1.0";
