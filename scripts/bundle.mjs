// `node scripts/bundle.mjs DIST`: makes one file of each thread of a build. A thread loads its modules anew whenever it is
// started, each with a cost of its own: in one file, opening a SQLite store takes 60 ms of a processor instead of 100.
// Only threads: nothing else imports their files, so that no module is there twice in one thread.

import { isAbsolute, join, resolve } from "node:path";
import { rolldown } from "rolldown";

const THREADS = ["store/sqlite/thread.js", "store/postgres/pulse-thread.js"];

const [dist = "dist"] = process.argv.slice(2);
for (const thread of THREADS) {
  const file = join(resolve(dist), thread);
  // Packages stay imports, and are found where they are installed.
  const external = (id) => !id.startsWith(".") && !isAbsolute(id);
  const bundle = await rolldown({ input: file, platform: "node", external });
  await bundle.write({ file, format: "esm", comments: false });
  await bundle.close();
}
