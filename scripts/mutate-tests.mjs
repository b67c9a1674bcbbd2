// The process of `npm run prove -- mutate` that runs the tests of a copy; started again where a mutant made it hang.
import { fork } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

/** Where no test ends for so long, and six times what the tests asked for need, the change made a loop without end. */
const SILENT_MS = 40_000;

/** Runs tests of one copy, one request at a time. */
export class MutateTests {
  #copy;
  #child = null;

  constructor(copy) {
    this.#copy = copy;
  }

  /** Runs test files without a change; of each, the tests that pass, how long they take and which changes they pass by. */
  async passedBy(files) {
    const notes = join(this.#copy, `passed-${process.pid}-${Math.random()}.jsonl`);
    const asked = files.map((each) => ({ ...each, isApart: true }));
    const answer = await this.#ask({ files: asked, mutant: 0, passed: notes }, 10 * SILENT_MS);
    if (answer === null) throw new Error(`A test of these hangs without a change: ${JSON.stringify(files)}`);
    const lines = existsSync(notes) ? readFileSync(notes, "utf8").split("\n").filter(Boolean) : [];
    rmSync(notes, { force: true });
    const noted = new Map(lines.map((line) => JSON.parse(line)).map((note) => [note.file, note]));
    return files.flatMap(({ file, isApart }) => {
      const [note, module] = [noted.get(file), answer.modules.find((each) => each.file === file)];
      for (const { name } of module?.tests.filter(({ passed }) => !passed) ?? []) {
        process.stdout.write(`left out: ${file} › ${name}, which fails without a change\n`);
      }
      if (!note || !module) return [];
      const sound = module.tests.filter(({ passed }) => passed);
      const tests = sound.map(({ id, ms }) => ({ id, ms, passes: note.tests[id] ?? [] }));
      return [{ file, isApart, loadMs: module.loadMs, outside: note.outside, tests }];
    });
  }

  /** Runs tests with a change; those of them with a test that fails, or all where an error belongs to none. */
  async failing(tests, mutant) {
    const longestMs = Math.max(...tests.map(({ ms }) => ms));
    const answer = await this.#ask({ files: tests, mutant }, SILENT_MS + 6 * longestMs);
    if (answer === null) return { isStuck: true, failed: [] };
    const passed = new Set(answer.modules.filter((module) => module.passed).map(({ file }) => file));
    const failed = tests.filter(({ file }) => !passed.has(file));
    return { isStuck: false, failed: failed.length === 0 && answer.isDisturbed ? tests : failed };
  }

  async end() {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const isOver = new Promise((resolve) => child.once("exit", resolve));
    // With everything that it started.
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    await isOver;
  }

  /** The answer to a request; null where nothing was heard for too long, and then the process is ended. */
  async #ask(request, silentMs) {
    if (this.#child === null) {
      const stdio = ["ignore", "ignore", "inherit", "ipc"];
      this.#child = fork(join(this.#copy, "scripts/mutate-runner.mjs"), { cwd: this.#copy, detached: true, stdio });
      await this.#answer("ready", SILENT_MS);
    }
    this.#child.send(request);
    const answer = await this.#answer("done", silentMs);
    if (answer === null) await this.end();
    return answer;
  }

  #answer(kind, silentMs) {
    return new Promise((resolve, reject) => {
      const child = this.#child;
      const end = (answer) => {
        clearTimeout(silence);
        child.off("message", hear).off("exit", isGone);
        resolve(answer);
      };
      const isGone = () => reject(new Error("The process that runs the tests has ended."));
      const hear = (message) => (message.kind === kind ? end(message) : silence.refresh());
      const silence = setTimeout(() => end(null), silentMs);
      child.on("message", hear).once("exit", isGone);
    });
  }
}
