// Where an error was thrown, as one name that a rebuild of the program does not change: the topmost function of the
// user's own code. Stacks of V8, Python tracebacks and Java stack traces are read; every line is read once.
//
//   frame                                                     what it says
//   `node:…`, `<anonymous>`, `native`, java.*, lib/python     the runtime: skipped
//   node_modules, site-packages, org.apache.*, …              a library: skipped
//   asyncGeneratorStep, _next, __awaiter, lambda$…, <lambda>  made by a compiler: skipped
//   a listener (`Socket.…`)                                   called by the runtime: skipped
//   parse, request, validate, settle, …                       a library that a bundler took along: skipped; the answer
//                                                             if a callback follows, or for an error of the language
//   anonymous                                                 a callback. What the runtime called it from (`Array.map`)
//                                                             holds it: skipped. Else the names behind it are those of
//                                                             whatever runs callbacks: no answer
//   one to three letters                                      minified, and the names behind it too: no answer
//   anything else                                             the answer: its last name, without class, module, `$1`;
//                                                             for a helper such as `findUser` with its caller

/** Lines that are longer hold no frame. */
const MAX_LINE = 1024;
const MAX_CAUSES = 3;
const RUNTIME = /^(?:node:|internal\/|native|<anonymous>|index \d|eval at )/;
/** What reads the answers of `fetch`: its stacks hold the caller in some versions of Node only. */
const FETCH = /^node:internal\/deps\/undici\//;
const LIBRARY = /[\\/]node_modules[\\/]/;
/** What TypeScript, swc and Babel write for `async` and generators. */
const COMPILED =
  /^(?:asyncGeneratorStep|asyncToGenerator|next|throw|step|adopt|fulfilled|rejected|awaiter|generator|tryCatch|invoke|require)$/;
/** A library that a bundler took along: CommonJS exports, and undici's reader of an answer, which runs in a listener. */
const BUNDLED = /^(?:exports|consumeEnd)$/;
/** Receivers of the runtime: their methods are listeners and callbacks. */
const RECEIVER =
  /^(?:IncomingMessage|ClientRequest|ServerResponse|Socket|TLSSocket|Server|Immediate|Timeout|EventEmitter|Promise|Array|Map|Set|Generator|AsyncGenerator|Transform|Readable|Writable|Duplex|ReadStream|WriteStream|ChildProcess|Worker|MessagePort)\./;
/** Functions of libraries, which look like the user's once a bundler has put all into one file. */
const GENERAL = new RegExp(
  `^(?:${[
    "(?:safe|sync|async|do|on|inner|internal|handle|run)?(?:parse|stringify|serialize|deserialize|validate|compile",
    "|request|fetch|dispatch|settle|emit|send|call|apply|execute|query|handle|process|resolve|reject|create|decode",
    "|encode|read|write|load|open|close|end|error|fail|check|record)",
    // axios, pg and mysql2, ajv, yaml.
    "|dispatchHttpRequest|handleStreamEnd|handleRequestError|httpAdapter",
    "|parseErrorMessage|handlePacket|handleErrorMessage|parseError|asError",
    "|validateSchema|addSchema|compileSchema|checkValid",
    "|parseDocument|parseAllDocuments|compose(?:Collection|Node|Doc|Scalar)?",
    "|resolve(?:Block(?:Map|Seq)|Flow(?:Collection|Scalar)|Collection|Props|End)",
  ].join("")})(?:Sync|Async)?$`,
  "i",
);
/** Functions that find or demand something for their callers. */
const HELPER = /^(?:invariant$|(?:find|get|require|assert|ensure|expect|must|lookup)(?:[A-Z]|$))/;
const MINIFIED = /^[\w$]{1,3}$/;
const WORDS_OF_THREE =
  /^(?:run|get|set|put|add|map|all|try|pop|log|use|end|new|api|app|job|pay|buy|tax|zip|pdf|csv|xml|sql)$/;
/** Errors of the language and DOMExceptions: the topmost own function is where it happened, whatever its name. */
export const LANGUAGE_ERROR =
  /^(?:(?:Type|Range|Syntax|Reference|URI|Eval)Error|(?:DataClone|InvalidCharacter|InvalidState|NotSupported|Encoding|Operation)Error)$/;
/** Calls of the runtime that run a callback at once: the function behind them is the one that holds it. */
const CALLS_BACK = /^(?:Array|Map|Set|String|JSON|Object|Function|Reflect|Generator|Promise|next|throw)\b/;

const PYTHON_LIBRARY = /[\\/](?:site-packages|dist-packages|lib[\\/]python[\d.]*)[\\/]|^<frozen /;
const JAVA_LIBRARY =
  /^(?:javax?|jdk|sun|com\.sun|jakarta|kotlinx?|scala|groovy|clojure|org\.(?:springframework|apache|hibernate|junit|postgresql|slf4j|eclipse|jboss|mongodb|elasticsearch)|com\.(?:fasterxml|google|zaxxer|mysql|amazonaws|netflix|rabbitmq)|io\.(?:netty|grpc|micrometer|projectreactor|vertx|lettuce)|reactor|okhttp3|feign|redis|akka|software\.amazon)\./;

/** The kind of program that wrote a stack. */
export type StackLanguage = "javascript" | "python" | "java";

/** Which program wrote this stack. */
export function languageOf(stack: string): StackLanguage {
  if (stack.includes("Traceback (most recent call last)")) return "python";
  return /^[ \t]+at [\w.$/@<>-]+\((?:\w+\.(?:java|kt|scala|groovy)(?::\d+)?|Unknown Source|Native Method)\)/m.test(
    stack,
  )
    ? "java"
    : "javascript";
}

/** The name of the topmost own function; empty where the stack has none that a rebuild keeps. */
export function ownFunction(stack: string, language: StackLanguage, errorName: string): string {
  const lines = stack.split("\n").filter((line) => line.length <= MAX_LINE);
  if (language === "python") return pythonFunction(lines);
  return language === "java" ? javaFunction(lines) : scriptFunction(lines, LANGUAGE_ERROR.test(errorName));
}

function scriptFunction(lines: readonly string[], isOfLanguage: boolean): string {
  let general = "";
  let isInCallback = false;
  let isInPromise = false;
  for (const [at, line] of lines.entries()) {
    const frame = scriptFrame(line.trim());
    if (frame === null) continue;
    if (FETCH.test(frame.place)) return "fetch";
    const isOwn = isOwnPlace(frame.place);
    const name = bareName(frame.name);
    if (!isOwn || COMPILED.test(name) || BUNDLED.test(name)) {
      if (COMPILED.test(name) || CALLS_BACK.test(frame.name)) isInCallback = false;
      isInPromise = frame.name === "Promise";
    } else if (name === "" || RECEIVER.test(frame.name)) {
      if (isInCallback && name === "") return general;
      isInCallback = !isInPromise && name === "";
      isInPromise = false;
    } else if (isInCallback) return general;
    else if (isMinified(name)) return "";
    else if (isOfLanguage || !isGeneral(name, frame.name))
      return withCaller(name, lines[at + 1] ?? "", lines[at + 2] ?? "");
    else general ||= name;
  }
  return "";
}

function isMinified(name: string): boolean {
  return MINIFIED.test(name) && !WORDS_OF_THREE.test(name);
}

function isOwnPlace(place: string): boolean {
  return !RUNTIME.test(place) && !LIBRARY.test(place);
}

/**
 * A helper that many call, such as `findUser`, with the one that called it, unless that never had a name or waited for
 * it; no answer where a minifier or compiler took the caller's name, because another build counts it.
 */
function withCaller(name: string, line: string, next: string): string {
  const frame = HELPER.test(name) && !line.includes("at async ") ? scriptFrame(line.trim()) : null;
  if (frame === null || !isOwnPlace(frame.place)) return name;
  const caller = bareName(frame.name);
  if (caller === "" ? next.includes("at Generator.next ") : isMinified(caller)) return "";
  return caller === "" || WORDS_OF_THREE.test(caller) || COMPILED.test(caller) ? name : `${name} ${caller}`;
}

/** One line of a V8 stack; null for lines of the message. */
function scriptFrame(line: string): { readonly name: string; readonly place: string } | null {
  if (!line.startsWith("at ")) return null;
  const text = line.slice(3).replace(/^(?:async |new )+/, "");
  const open = text.lastIndexOf(" (");
  const place = open < 0 ? text : text.slice(open + 2, -1);
  if (!/:\d+$|^(?:native|<anonymous>|index \d+)/.test(place)) return null;
  const name = open < 0 ? "" : text.slice(0, open).replace(/ \[as [^\]]{0,100}\]$/, "");
  return { name: name.includes("<anonymous>") ? "" : name, place };
}

/** The last part of a name without what bundlers add: `file_name`, `name$1`, `name2`. */
function bareName(name: string): string {
  const last = name.slice(name.lastIndexOf(".") + 1).replace(/^[_#]+|\$?\d+$/g, "");
  return last.slice(last.lastIndexOf("_") + 1);
}

/** True for a function that a library probably brought: a general verb, or a private name. */
function isGeneral(name: string, whole: string): boolean {
  return GENERAL.test(name) || /(?:^|\.)__/.test(whole);
}

/** The innermost own function of the last traceback, which is the one that was thrown. */
function pythonFunction(lines: readonly string[]): string {
  let found = "";
  for (const line of lines) {
    if (line.startsWith("Traceback ")) found = "";
    const frame = /^\s+File "([^"]*)", line \d+(?:, in (.+))?$/.exec(line);
    const name = (frame?.[2] ?? "").trim();
    if (frame === null || name.startsWith("<") || PYTHON_LIBRARY.test(frame[1] ?? "")) continue;
    found = name.slice(name.lastIndexOf(".") + 1);
  }
  return found;
}

/** Class and method, without the package, which shading changes. */
function javaFunction(lines: readonly string[]): string {
  for (const line of lines) {
    const frame = /^\s+at (?:[\w.@-]*\/)*([\w.$<>]+)\(/.exec(line);
    const name = frame?.[1] ?? "";
    if (name === "" || JAVA_LIBRARY.test(name) || /lambda\$|access\$|\$\$|<clinit>/.test(name)) continue;
    return name.split(".").slice(-2).join(".");
  }
  return "";
}

/** The first lines of the causes: `Name: message`, outermost first, at most three. */
export function causeHeads(stack: string, language: StackLanguage): string[] {
  if (language === "python") return pythonHeads(stack);
  if (!stack.includes("\nCaused by: ")) return [];
  const [, ...causes] = stack.split("\nCaused by: ");
  return causes.slice(0, MAX_CAUSES).map((cause) => cause.split("\n", 1)[0] ?? "");
}

/** Python writes the first exception first, each with its traceback; the last one is the error itself. */
function pythonHeads(stack: string): string[] {
  const [, ...tracebacks] = stack.split("Traceback (most recent call last)");
  return tracebacks
    .slice(0, -1)
    .map((traceback) => traceback.split("\n").find((line) => /^[A-Za-z_]/.test(line)) ?? "")
    .slice(-MAX_CAUSES);
}
