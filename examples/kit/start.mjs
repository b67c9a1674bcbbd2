// Starts a file in TypeScript, on Node 20 too. Nothing is installed: redrive and jiti are those of the checkout.

/** Loads `main.ts` beside the file that asks, after a look at what it needs. */
export async function start(from) {
  for (const [name, remedy] of [
    ["redrive", "at the top of the checkout run: npm ci && npm run build"],
    ["jiti", "at the top of the checkout run: npm ci"],
  ]) {
    try {
      await import(name);
    } catch (error) {
      const why = String(error?.message ?? error).split("\n")[0];
      process.stderr.write(`The example cannot start: no ${name}; ${remedy}\n  (${why})\n`);
      process.exit(1);
    }
  }
  const { createJiti } = await import("jiti");
  // What Node can load itself it loads itself; only TypeScript on an older Node is transformed.
  await createJiti(from, { tryNative: true }).import("./main.ts");
}
