// How the URL of a store looks, for every text that names all of them; what each may say is read by its own folder.

/** The forms of URLs under which a program finds a store again. */
export const STORE_URLS = ["sqlite:PATH", "postgres://…"] as const;

/** The default, in the working directory. */
export const DEFAULT_STORE = "sqlite:./redrive.db";
