// Enqueues over HTTP: one job as JSON, or any number as lines of JSON, which are written by 1,000 and answered line by line.
import { isRedriveError } from "../../core/errors.ts";
import { invalid, parseOptions } from "../../core/options.ts";
import { isPromise } from "../../core/promise.ts";
import type { JobToEnqueue } from "../../enqueue/enqueue-each.ts";
import type { EnqueueOptions } from "../../enqueue/new-jobs.ts";
import type { EnqueuedJob } from "../../enqueue/enqueue-result.ts";
import type { Redrive } from "../../redrive-api.ts";
import { type BodyLine, bodyLines, fieldText, isSayable, parsedBody } from "../body.ts";
import { type Call, HttpReply } from "../call.ts";
import { isLines } from "../guard.ts";
import { errorForm, HttpError } from "../http-error.ts";
import { instantFrom } from "../input.ts";
import { newJob } from "../routes/work.ts";

/** Lines per write, and characters of them. */
const LINES = 1_000;
const LENGTH = 4_194_304;
/** How long lines wait for more lines before they are written. */
const QUIET_MS = 50;

/** Answers `POST /jobs`. */
export async function enqueue(call: Call<"jobs.enqueue">): Promise<object> {
  if (isLines(call.request))
    return new HttpReply(answers(call), { headers: { "content-type": "application/x-ndjson" } });
  const { redrive, request, text, body } = call;
  const key = request.headers.get("idempotency-key");
  const making = jobFrom(redrive, text, key !== null && body.id === undefined ? { ...body, id: key } : body);
  const [answer] = await redrive.enqueueEach([isPromise(making) ? await making : making]);
  if (answer === undefined) throw new HttpError("internal", "The store gave no answer.");
  if (isRedriveError(answer)) throw answer;
  const said = JSON.stringify({ ...answer, known: isKnown(redrive)(answer.type) });
  return new HttpReply(said, { status: answer.duplicate || answer.replaced ? 200 : 201 });
}

/** True for a type that this server defines. */
function isKnown({ types }: Pick<Redrive, "types">): (type: string) => boolean {
  return (type) => types.some((each) => each.type === type);
}

const FIELDS = Object.keys(newJob.entries);

/** A body that describes a job. The library checks the values, so that they are checked here only where it would not. */
export function jobBody(value: unknown): Readonly<Record<string, unknown>> {
  const body = parseOptions(value, FIELDS, "body");
  if (typeof body["type"] !== "string") throw invalid("type", "the name of a job type", body["type"], "add it");
  if (body["payload"] === undefined) throw invalid("payload", "any JSON", undefined, "add it, null for none");
  for (const name of FIELDS)
    if (body[name] === null && name !== "payload" && name !== "deadline")
      throw invalid(name, "a value", null, "leave it out");
  return body;
}

/** The job that a body describes; its payload as it stands in the text. */
function jobFrom(
  { store }: Pick<Redrive, "store">,
  text: string,
  body: Readonly<Record<string, unknown>>,
): JobToEnqueue | Promise<JobToEnqueue> {
  const {
    type,
    payload: _,
    id,
    runAt,
    ...options
  } = body as { type: string; payload: unknown; id?: string; runAt?: unknown };
  const made = (at: unknown): JobToEnqueue => ({
    job: type,
    text: fieldText(text, "payload") ?? "null",
    options: (at === undefined ? options : { ...options, runAt: at }) as EnqueueOptions,
    ...(id !== undefined && { id }),
  });
  if (typeof runAt !== "string" || !runAt.startsWith("-")) return made(runAt);
  return store.control().then(({ now }) => made(instantFrom(runAt, "runAt", now)));
}

/** The answers as lines, each once its chunk is written. */
function answers(call: Call<"jobs.enqueue">): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const chunks = written(call);
  const leave = call.hold();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await chunks.next();
        if (!done) return controller.enqueue(encoder.encode(value));
        leave();
        controller.close();
      } catch (error) {
        leave();
        throw error;
      }
    },
    cancel() {
      leave();
      // Not awaited: it may wait for a line that never comes.
      void chunks.return(undefined).catch(() => undefined);
    },
  });
}

interface Line {
  readonly line: number;
  readonly job: JobToEnqueue | null;
  readonly error: unknown;
}

/**
 * Writes the lines by chunks and yields their answers; the next chunk is read while one is being written. Where the body
 * breaks off, what was read whole is written.
 */
async function* written(call: Call<"jobs.enqueue">): AsyncGenerator<string, undefined> {
  const chunks = chunkOf(call);
  const blocks = bodyLines(call.request, call.mostBytes);
  try {
    for (;;) {
      const asked = blocks.next();
      // A sender that waits for its answers sends nothing more.
      if (chunks.hasWork() && (await isQuiet(call, asked))) {
        yield* chunks.rest();
      }
      const { done, value } = await asked;
      if (done === true) break;
      for (const each of value) {
        const line = lineOf(call, each);
        if (!chunks.add(isPromise(line) ? await line : line, each.text.length)) continue;
        yield* chunks.answered();
        chunks.send();
      }
    }
  } catch (error) {
    yield* chunks.rest();
    yield lineText({ line: null, error: errorForm(error, call.requestId).body });
    return;
  } finally {
    void blocks.return(undefined).catch(() => undefined);
  }
  yield* chunks.rest();
}

/** The lines that wait to be written, and the write that is under way. */
function chunkOf(call: Call<"jobs.enqueue">) {
  let lines: Line[] = [];
  let length = 0;
  const under: { write: Promise<string> | null } = { write: null };
  const chunks = {
    hasWork: () => under.write !== null || lines.length > 0,
    /** True where they are as many as one write takes. */
    add(line: Line, characters: number): boolean {
      lines.push(line);
      length += characters;
      return lines.length >= LINES || length >= LENGTH;
    },
    send(): void {
      if (lines.length === 0) return;
      const write = answerOf(call, lines);
      // The caller that awaits it gets the error.
      write.catch(() => undefined);
      under.write = write;
      lines = [];
      length = 0;
    },
    /** The answers of the write that is under way. */
    async *answered(): AsyncGenerator<string> {
      const { write } = under;
      under.write = null;
      if (write !== null) yield await write;
    },
    async *rest(): AsyncGenerator<string> {
      yield* chunks.answered();
      chunks.send();
      yield* chunks.answered();
    },
  };
  return chunks;
}

/** True where nothing comes for a moment. */
async function isQuiet({ server: { system } }: Call<"jobs.enqueue">, asked: Promise<unknown>): Promise<boolean> {
  let cancel = (): void => undefined;
  const quiet = new Promise<boolean>((resolve) => (cancel = system.after(QUIET_MS, () => resolve(true))));
  const came = asked.then(
    () => false,
    () => false,
  );
  const answer = await Promise.race([came, quiet]);
  cancel();
  return answer;
}

function lineOf({ redrive }: Call<"jobs.enqueue">, { line, text, error }: BodyLine): Line | Promise<Line> {
  const failed = (cause: unknown): Line => {
    if (!isSayable(cause)) throw cause;
    return { line, job: null, error: cause };
  };
  if (error !== null) return { line, job: null, error };
  try {
    const job = jobFrom(redrive, text, jobBody(parsedBody(text)));
    return isPromise(job) ? job.then((made) => ({ line, job: made, error: null }), failed) : { line, job, error: null };
  } catch (cause) {
    return failed(cause);
  }
}

async function answerOf({ redrive, requestId }: Call<"jobs.enqueue">, lines: readonly Line[]): Promise<string> {
  const jobs = lines.flatMap(({ job }) => job ?? []);
  let found: readonly (EnqueuedJob | Error)[];
  try {
    found = await redrive.enqueueEach(jobs);
  } catch (error) {
    if (!isSayable(error)) throw error;
    // Nothing is known of these lines: the store did not answer. The caller sends them again.
    found = jobs.map(() => error);
  }
  const known = isKnown(redrive);
  let at = 0;
  let text = "";
  for (const { line, job, error } of lines) {
    const answer = job === null ? error : found[at++];
    if (answer instanceof Error) text += lineText({ line, error: errorForm(answer, requestId).body });
    else {
      const made = answer as EnqueuedJob;
      text += lineText({ line, ...made, known: known(made.type) });
    }
  }
  return text;
}

function lineText(answer: object): string {
  return `${JSON.stringify(answer)}\n`;
}
