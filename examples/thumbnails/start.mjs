// Starts a TypeScript file of this folder, on Node 20 too, after a look at what it needs. Whatever is missing is named
// with the command that brings it; nothing is installed behind anybody's back.

const MISSING = {
  jiti: "jiti is not installed; in this folder run: npm ci",
  sharp: "sharp is not installed, or not for this platform; in this folder run: npm ci",
  redrive:
    "redrive is not installed or not built; in this folder run: npm ci, and at the top of the checkout: npm run build",
};

const problems = [];
for (const [name, remedy] of Object.entries(MISSING)) {
  try {
    await import(name);
  } catch (error) {
    problems.push(`${remedy}\n  (${String(error?.message ?? error).split("\n")[0]})`);
  }
}

if (problems.length > 0) {
  process.stderr.write(`The example cannot start:\n${problems.map((problem) => `- ${problem}`).join("\n")}\n`);
  process.exit(1);
}

const [, , file, ...args] = process.argv;
process.argv = [process.argv[0], file, ...args];
const { createJiti } = await import("jiti");
// What Node can load itself it loads itself; only TypeScript on an older Node is transformed.
await createJiti(import.meta.url, { tryNative: true }).import(`./${file}`);
