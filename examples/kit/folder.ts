// The folder in which an example leaves its files, emptied before the next run.
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";

/** Makes the folder, and removes what an earlier run left there. Files of others stay, or are a reason to refuse. */
export async function emptyFolder(folder: string, ours: RegExp, others: "stay" | "refused"): Promise<void> {
  await mkdir(folder, { recursive: true });
  const names = await readdir(folder);
  const foreign = names.find((name) => !ours.test(name));
  if (others === "refused" && foreign !== undefined)
    throw new Error(`${folder} has files that this example did not make, as ${foreign}; empty it first`);
  const left = names.filter((name) => ours.test(name));
  await Promise.all(left.map((name) => rm(join(folder, name), { recursive: true })));
}
