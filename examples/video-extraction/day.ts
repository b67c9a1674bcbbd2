// The story: a Python entry point with nothing but an exit code, killed in the middle and started again; then a Node entry
// point that says what became of each item.
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { styleText } from "node:util";
import { balance, type Round } from "./books.ts";
import { type Ended, redrive } from "./commands.ts";
import { folder, makeVideos, planVideos, type Video } from "./videos.ts";

const isColoured = process.stdout.isTTY === true && !process.env.NO_COLOR;
const paint = (style: "bold" | "green" | "red", text: string): string =>
  isColoured ? styleText(style, text, { validateStream: false }) : text;
const say = (text: string): void => void process.stdout.write(`${text}\n`);
const heading = (text: string): void => say(`\n${paint("bold", text)}`);

/** Runs the day; true if its books balance. */
export async function startDay({ store, videos: count }: { store: string; videos: number }): Promise<boolean> {
  const videos = planVideos(count);
  heading(`${count} videos, some of them missing or corrupt`);
  await makeVideos(videos);
  // A store may be shared with others, and with earlier days.
  const day = randomUUID().slice(0, 8);
  const python = await playPython(store, videos, `python-${day}`);
  const node = await playNode(store, videos, `node-${day}`);
  const checks = await balance(store, videos, { python, node });
  heading("The books");
  for (const { ok, text } of checks) say(`  ${ok ? paint("green", "✓") : paint("red", "✗")} ${text}`);
  return checks.every(({ ok }) => ok);
}

/** Nothing but an exit code; killed once a third is done, and started again. */
async function playPython(store: string, videos: readonly Video[], name: string): Promise<Round> {
  const args = ["batch", "--json", "--env", "VIDEO_FOLDER", "--name", name, "--", "python3", "extract.py"];
  const env = { JOB_INPUT: inputOf(videos), BATCH_SIZE: "5", MAX_RETRIES: "2" };
  heading("$ JOB_INPUT='[…]' BATCH_SIZE=5 MAX_RETRIES=2 redrive batch -- python3 extract.py");
  const killed = await redrive(store, args, { env, kill: () => thumbnails() >= videos.length / 3 });
  say(`killed with kill -9 when ${thumbnails()} thumbnails were there; once more, the same command:`);
  return roundOf(name, await redrive(store, args, { env }), killed);
}

/** A word about every item; nothing that is good runs twice. */
async function playNode(store: string, videos: readonly Video[], name: string): Promise<Round> {
  for (const kind of ["frames", "thumbnails"])
    for (const name of readdirSync(join(folder, kind))) rmSync(join(folder, kind, name));
  const flags = ["--contract", "lines", "--batch-size", "5", "--max-retries", "2", "--parallel", "2"];
  heading(`$ redrive batch ${flags.join(" ")} -- node extract.mjs`);
  const entry = ["--env", "VIDEO_FOLDER", "--name", name, "--", process.execPath, "extract.mjs"];
  const env = { JOB_INPUT: inputOf(videos) };
  return roundOf(name, await redrive(store, ["batch", "--json", ...flags, ...entry], { env }), null);
}

function inputOf(videos: readonly Video[]): string {
  return JSON.stringify(videos.map(({ platform, code }) => ({ platform, code })));
}

function thumbnails(): number {
  return readdirSync(join(folder, "thumbnails")).filter((name) => !name.startsWith(".")).length;
}

function roundOf(name: string, { code, stdout }: Ended, killed: Ended | null): Round {
  const made = (kind: string): string[] =>
    readdirSync(join(folder, kind)).flatMap((name) => (name.startsWith(".") ? [] : [name.replace(/\.jpg$/, "")]));
  const journal = join(folder, "journal.txt");
  const lines = existsSync(journal) ? readFileSync(journal, "utf8").trim().split("\n") : [];
  return {
    name,
    code,
    report: stdout === "" ? null : (JSON.parse(stdout) as Round["report"]),
    wasKilled: killed !== null && killed.code === null,
    frames: made("frames"),
    thumbnails: made("thumbnails"),
    lines,
  };
}
