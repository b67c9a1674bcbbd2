// Errors as programs throw them: sockets, HTTP clients, databases, code. Each function makes one anew for every run.

/** The maker of an error. */
export type ErrorMaker = () => Error;

/** An error with a name and fields of its own. */
export const named =
  (name: string, message: string, fields: object = {}): ErrorMaker =>
  () =>
    Object.assign(new Error(message), { name, ...fields });

/** An error of a socket or of the file system. */
export const system =
  (code: string, message: string): ErrorMaker =>
  () =>
    Object.assign(new Error(message), { code });

/** The answer of an HTTP service. */
export const http = (status: number, message: string, fields: object = {}): ErrorMaker =>
  named("HttpError", message, { status, ...fields });

/** A mistake in the code. */
export const typeError =
  (message: string): ErrorMaker =>
  () =>
    new TypeError(message);

/** An error of Postgres. */
export const postgres = (code: string, message: string): ErrorMaker =>
  named("error", message, { code, severity: "ERROR", routine: "exec" });
