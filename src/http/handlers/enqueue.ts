// Enqueues over HTTP: one job as JSON, or any number as lines of JSON, which are written by 1,000 and answered line by line.
import { isRedriveError } from "../../core/errors.ts";
import type { JobToEnqueue } from "../../enqueue/enqueue-each.ts";
import type { EnqueueOptions } from "../../enqueue/new-jobs.ts";
import type { EnqueuedJob } from "../../enqueue/enqueue-result.ts";
import { bodyLines, fieldText, isSayable, parsedBody } from "../body.ts";
import { type Call, HttpReply } from "../call.ts";
import { isLines } from "../guard.ts";
import { errorForm, HttpError } from "../http-error.ts";
import { bodyFrom, instantFrom } from "../input.ts";
import { newJob } from "../routes/work.ts";

/** Lines per write, and characters of them. */
const LINES = 1_000;
const LENGTH = 4_194_304;

/** Answers `POST /jobs`. */
export async function enqueue(call: Call<"jobs.enqueue">): Promise<object> {
  if (isLines(call.request))
    return new HttpReply(answers(call), { headers: { "content-type": "application/x-ndjson" } });
  const key = call.request.headers.get("idempotency-key");
  const { text, body } = call;
  const job = await jobFrom(call, text, key !== null && body.id === undefined ? { ...body, id: key } : body);
  const [answer] = await call.redrive.enqueueEach([job]);
  if (answer === undefined) throw new HttpError("internal", "The store gave no answer.");
  if (isRedriveError(answer)) throw answer;
  const known = call.redrive.types.some(({ type }) => type === answer.type);
  return new HttpReply({ ...answer, known }, { status: answer.duplicate || answer.replaced ? 200 : 201 });
}

/** The job that a body describes; its payload as it stands in the text. */
async function jobFrom(
  { redrive }: Pick<Call, "redrive">,
  text: string,
  body: Readonly<Record<string, unknown>>,
): Promise<JobToEnqueue> {
  const {
    type,
    payload: _,
    id,
    runAt,
    ...options
  } = body as {
    type: string;
    payload: unknown;
    id?: string;
    runAt?: string | number;
  };
  const at =
    typeof runAt === "string" && runAt.startsWith("-")
      ? instantFrom(runAt, "runAt", (await redrive.store.control()).now)
      : runAt;
  return {
    job: type,
    text: fieldText(text, "payload") ?? "null",
    options: { ...options, ...(at !== undefined && { runAt: at }) } as EnqueueOptions,
    ...(id !== undefined && { id }),
  };
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

/** Writes the lines by chunks; yields their answers. Where the body breaks off, what was read whole is written. */
async function* written(call: Call<"jobs.enqueue">): AsyncGenerator<string, undefined> {
  let lines: Line[] = [];
  let length = 0;
  try {
    for await (const { line, text } of bodyLines(call.request, call.mostBytes)) {
      lines.push(await lineOf(call, line, text));
      length += text.length;
      if (lines.length < LINES && length < LENGTH) continue;
      const full = lines;
      lines = [];
      length = 0;
      yield await answerOf(call, full);
    }
  } catch (error) {
    if (lines.length > 0) yield await answerOf(call, lines);
    yield lineText({ line: null, error: errorForm(error, call.requestId).body });
    return;
  }
  if (lines.length > 0) yield await answerOf(call, lines);
}

async function lineOf(call: Call<"jobs.enqueue">, line: number, text: string): Promise<Line> {
  try {
    return { line, job: await jobFrom(call, text, bodyFrom(newJob, parsedBody(text))), error: null };
  } catch (error) {
    if (!isSayable(error)) throw error;
    return { line, job: null, error };
  }
}

async function answerOf(call: Call<"jobs.enqueue">, lines: readonly Line[]): Promise<string> {
  const jobs = lines.flatMap(({ job }) => job ?? []);
  let found: readonly (EnqueuedJob | Error)[];
  try {
    found = await call.redrive.enqueueEach(jobs);
  } catch (error) {
    if (!isSayable(error)) throw error;
    // Nothing is known of these lines: the store did not answer. The caller sends them again.
    found = jobs.map(() => error);
  }
  let at = 0;
  return lines
    .map(({ line, job, error }) => {
      const answer = job === null ? error : found[at++];
      if (answer instanceof Error) return lineText({ line, error: errorForm(answer, call.requestId).body });
      return lineText({ line, ...(answer as EnqueuedJob) });
    })
    .join("");
}

function lineText(answer: object): string {
  return `${JSON.stringify(answer)}\n`;
}
