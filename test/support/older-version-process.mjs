// A program of an older version: it fills a store, or it works on one until its parent says stop. It loads the library as
// that version left it (test/fixtures/version-N.tgz). Arguments: the address of that library, the URL of the store, the role
// (`fill` or `work`) and its numbers as JSON. It answers its parent with one message when it is done.
const [library, url, role, numbers] = process.argv.slice(2);
const { createRedrive, defineJob, PermanentError } = await import(library);
const given = JSON.parse(numbers);
const CHUNK = 1_000;

/** An error whose name is its cause: fingerprints leave numbers in messages out. */
const errorOf = (name) => Object.assign(new PermanentError("The input is wrong."), { name });

const heard = (message) => new Promise((resolve) => process.on("message", (said) => said === message && resolve()));
const tell = (message) => new Promise((resolve) => process.send(message, resolve));

async function enqueueAll(redrive, job, count, inputOf) {
  for (let from = 0; from < count; from += CHUNK) {
    const size = Math.min(CHUNK, count - from);
    await redrive.enqueueMany(
      job,
      Array.from({ length: size }, (_, at) => inputOf(from + at)),
    );
  }
}

/** Letters of some causes, made by runs that fail; then jobs that wait. */
async function fill({ jobs, letters, causes }) {
  const doomed = defineJob("doomed", {
    run({ cause }) {
      throw errorOf(`Cause${cause}Error`);
    },
  });
  const thing = defineJob("thing", { run: () => undefined });
  const redrive = await createRedrive({ store: url, jobs: [doomed], log: "silent" });
  await enqueueAll(redrive, doomed, letters, (n) => ({ n, cause: String.fromCharCode(65 + (n % causes)) }));
  await redrive.worker({ concurrency: 50, release: "1.0.0" }).drain({ grace: 0 });
  await enqueueAll(redrive, thing, jobs - letters, (n) => ({ n }));
  await redrive.close();
  await tell({ filled: jobs });
}

/** Works, and answers when each run began; when told, it redrives letters of `doomed`, which complete here. */
async function work({ runMs, badEach, retried }) {
  const began = [];
  const doomed = defineJob("doomed", { run: () => undefined });
  const thing = defineJob("thing", {
    async run({ n }) {
      began.push([n, Date.now()]);
      await new Promise((resolve) => setTimeout(resolve, runMs));
      if (n % badEach === 0) throw errorOf("BadInputError");
    },
  });
  const redrive = await createRedrive({ store: url, jobs: [doomed, thing], log: "silent" });
  const worker = redrive.worker({ concurrency: 5, release: "1.0.0" });
  const [stop, retry] = [heard("stop"), heard("retry")];
  await worker.start();
  await tell({ started: true });
  void retry.then(async () => {
    const { items } = await redrive.deadLetters.list({ type: "doomed", limit: retried });
    for (const { job } of items) await redrive.deadLetters.retry({ jobId: job.id });
    await tell({ retried: items.length });
  });
  await stop;
  await worker.stop({ within: "30s" });
  await redrive.close();
  await tell({ began });
}

await (role === "fill" ? fill(given) : work(given));
process.disconnect();
