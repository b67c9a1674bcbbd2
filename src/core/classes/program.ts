// Programs that a job runs (execa) and what Node says of its own calls: `ERR_…` codes by their beginning, certificates,
// tokens (jose), and the `type` of node-fetch.

import { read, readText } from "../error-shape.ts";
import type { FailureClass } from "../job.ts";
import { type Family, table } from "./clue.ts";

const PREFIXES: readonly (readonly [RegExp, FailureClass])[] = [
  [/^ERR_JW(?:T|S|E|K|KS)_(?!TIMEOUT)|^ERR_JOSE_ALG_/, "authentication"],
  [/^ERR_INVALID_(?!STATE|RETURN)/, "validation"],
  [
    /^ERR_HTTP_INVALID_|^ERR_MISSING_ARGS$|^ERR_OUT_OF_RANGE$|^ERR_UNESCAPED_|^ERR_ENCODING_INVALID_|^ERR_PARSE_ARGS_/,
    "validation",
  ],
  [
    /^ERR_(?:OSSL|CRYPTO|UNSUPPORTED|UNKNOWN|DLOPEN|REQUIRE|FS|PACKAGE|IMPORT|WASM)_|^ERR_JOSE_NOT_SUPPORTED$|^ERR_NO_CRYPTO$|^ERR_METHOD_NOT_/,
    "permanent",
  ],
  [/^(?:CERT|CRL|UNABLE_TO|SELF_SIGNED|DEPTH_ZERO)_|^HOSTNAME_MISMATCH$|^INVALID_(?:CA|PURPOSE)$/, "permanent"],
  [/^ERR_TLS_CERT/, "permanent"],
  [
    /^ERR_SSL_(?:WRONG_VERSION|UNSUPPORTED|NO_|\w{1,12}_ALERT_(?:PROTOCOL|HANDSHAKE|UNKNOWN_CA|CERTIFICATE|BAD_CERT))/,
    "permanent",
  ],
  [/^ERR__ERROR_FORMAT_/, "permanent"],
  [/^TAR_(?:BAD_ARCHIVE|ENTRY_)/, "permanent"],
];
const FETCH_TYPES = table({
  permanent: "max-size max-redirect no-redirect unsupported-redirect",
  timeout: "body-timeout request-timeout",
  transient: "invalid-json",
});
const NAMES = table({
  authentication: "NotBeforeError JsonWebTokenError TokenExpiredError",
  permanent: "DataCloneError NotSupportedError",
  network: "NetworkError",
});

/** Programs and Node itself. */
export const program: Family = ({ error, name, code, carries }) => {
  const run = carries === "more" ? byRun(error, name) : undefined;
  if (run !== undefined) return run;
  if (code === "") return NAMES.get(name);
  return NAMES.get(name) ?? PREFIXES.find(([beginning]) => beginning.test(code))?.[1];
};

/** By how a program that was run ended, or by what node-fetch says. */
function byRun(error: unknown, name: string): FailureClass | undefined {
  if (read(error, "timedOut") === true) return "timeout";
  if (read(error, "isMaxBuffer") === true) return "permanent";
  // A shell says 126 for a file that is no program and 127 for one that it does not find.
  const isChild = readText(error, "cmd") !== undefined;
  const exit = read(error, isChild ? "code" : "exitCode");
  if (exit === 126 || exit === 127) return "permanent";
  // Node's execFile kills a child after its timeout; a limit or an abort leaves a code.
  if (isChild && read(error, "killed") === true && exit === null) return "timeout";
  return name === "FetchError" ? FETCH_TYPES.get(readText(error, "type") ?? "") : undefined;
}
