// The forms of store URLs, for every text that lists them; the folder of each store reads its own URLs.

/** The URLs of stores that survive the process. */
export const STORE_URLS = ["sqlite:PATH", "postgres://…"] as const;

/** The default, in the working directory. */
export const DEFAULT_STORE = "sqlite:./redrive.db";
