// Writes one JSON document with a long list in it as a stream, so that ten million items need no memory.
import { isRedriveError, RedriveError } from "../core/errors.ts";
import { jsonText } from "../operate/json-form.ts";
import { put, shownAs } from "../system/output.ts";
import { complaintOf } from "./exit.ts";
import type { Io } from "./io.ts";

/** A document that is being written. */
export interface StreamedDocument {
  /** Adds an item, given as JSON text; false asks the caller to wait until there is room. */
  add(json: string): boolean;
  /** Ends the list and adds the other fields. */
  end(rest: object): void;
  /** Ends the document with an error. Throw what it returns, so that no second document is written. */
  fail(error: unknown, rest: object): unknown;
}

/** Begins a document whose first field is a list. */
export function streamDocument({ stdout }: Pick<Io, "stdout">, field: string): StreamedDocument {
  let before = `{"${field}":[`;
  const end = (rest: object): void => {
    put(stdout, "json", `${before === "," ? "" : before}],${jsonText(rest).slice(1)}\n`);
  };
  return {
    end,
    add(json) {
      const text = before + json;
      before = ",";
      return put(stdout, "json", text);
    },
    fail(error, rest) {
      const { code, message } = complaintOf(error);
      end({ ...rest, error: { code, message: shownAs("line", message) } });
      if (!isRedriveError(error)) return error;
      const details = { ...error.details, answered: true };
      return new RedriveError(error.code, error.message, { cause: error, details });
    },
  };
}
