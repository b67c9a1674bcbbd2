// The version of the package, for people who ask the program; a test compares it with package.json.

/** The version of the package. */
export const VERSION = "0.1.0";
