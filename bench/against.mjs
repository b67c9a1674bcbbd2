// What a job costs in this tree and in another one, such as a worktree of an older commit: CPU of the process that enqueues
// and works, and on Postgres of the server, the same jobs in turns. CPU time and the middle ratio of the turns say more
// than the clock on a machine that also does other work.
//   node bench/against.mjs --tree DIR [--only sqlite|postgres] [--short]
import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { inScratch, median, row } from "./measure.mjs";
import { inDatabase, writtenOut } from "./postgres/database.mjs";
import { startPostgres } from "./postgres/server.mjs";

const ACTOR = fileURLToPath(new URL("actors/tree.mjs", import.meta.url));
const HERE = fileURLToPath(new URL("..", import.meta.url));
const KINDS = ["done", "fails", "fails with ids", "fails in a library"];
const FIGURES = { enqueue: "enqueue, process", work: "work, process", server: "enqueue and work, server" };

const { values } = parseArgs({
  options: { tree: { type: "string" }, only: { type: "string" }, short: { type: "boolean" } },
});
if (!values.tree || !existsSync(join(values.tree, "dist", "index.js")))
  throw new Error(
    `Expected --tree to name a folder with a compiled dist/index.js; got ${values.tree}. Build it first.`,
  );
const [count, turns] = values.short ? [100, 1] : [5_000, 10];

/** Starts the process of one tree; `slice` runs jobs of a kind and gives their figures. */
async function start(tree, store, server) {
  const child = fork(ACTOR, [resolve(tree), store]);
  const ended = once(child, "exit").then(([code]) =>
    Promise.reject(new Error(`The process of ${tree} ended: ${code}.`)),
  );
  ended.catch(() => undefined);
  const heard = () => Promise.race([once(child, "message").then(([said]) => said), ended]);
  const tell = (word) => {
    const answer = heard();
    child.send(word);
    return answer;
  };
  await heard();
  const slice = async (kind) => {
    const before = server?.cpuMs();
    const { enqueue } = await tell({ kind, count });
    const { work } = await tell("work");
    const after = server?.cpuMs();
    if (server) await writtenOut(store);
    return { enqueue, work, ...(server && { server: ((after - before) * 1_000) / count }) };
  };
  return { slice, end: () => child.kill("SIGKILL") };
}

async function compare(store, trees) {
  const rounds = Object.fromEntries(KINDS.map((kind) => [kind, []]));
  for (let turn = -1; turn < turns; turn++)
    for (const kind of KINDS) {
      const order = turn % 2 === 0 ? ["here", "there"] : ["there", "here"];
      const round = {};
      for (const which of order) round[which] = await trees[which].slice(kind);
      // In the first turn V8 has not seen the code yet.
      if (turn >= 0) rounds[kind].push(round);
    }
  for (const [kind, all] of Object.entries(rounds)) report(`${store}, ${kind}`, all);
}

function report(name, rounds) {
  for (const [figure, words] of Object.entries(FIGURES)) {
    if (rounds[0].here[figure] === undefined) continue;
    const [here, there] = ["here", "there"].map((which) => median(rounds.map((round) => round[which][figure])));
    const ratio = median(rounds.map((round) => round.here[figure] / round.there[figure])).middle;
    const shown = `${here.middle.toFixed(1)} of ${there.middle.toFixed(1)} us ± ${Math.round(there.spread * 50)} %`;
    row(`${name}: ${words}`, shown, `${ratio.toFixed(2)} x`);
  }
}

const SUBJECTS = {
  sqlite: () =>
    inScratch(async (folder) => {
      const open = (tree, file) => start(tree, `sqlite:${join(folder, file)}`);
      await inTurns("SQLite", await open(HERE, "here.db"), await open(values.tree, "there.db"));
    }),
  postgres: () =>
    inScratch(async (folder) => {
      const server = await startPostgres(folder);
      try {
        await inDatabase(server, (here) =>
          inDatabase(server, async (there) =>
            inTurns("Postgres", await start(HERE, here, server), await start(values.tree, there, server)),
          ),
        );
      } finally {
        await server.stop();
      }
    }),
};

async function inTurns(store, here, there) {
  try {
    await compare(store, { here, there });
  } finally {
    here.end();
    there.end();
  }
}

const wanted = values.only?.split(",") ?? Object.keys(SUBJECTS);
for (const subject of wanted)
  if (!Object.hasOwn(SUBJECTS, subject)) throw new Error(`--only knows sqlite and postgres; got ${subject}.`);
for (const subject of wanted) await SUBJECTS[subject]();
