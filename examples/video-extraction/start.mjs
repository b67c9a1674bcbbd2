// Starts main.ts, on Node 20 too. Nothing is installed: redrive and jiti are those of the checkout, or of the folder that
// this example was copied to.

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
await createJiti(import.meta.url, { tryNative: true }).import("./main.ts");
