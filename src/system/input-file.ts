// Holds input of a command that is too long for a variable, in a file that only we can read, while the command runs.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A written input file. */
export interface InputFile {
  readonly path: string;
  remove(): Promise<void>;
}

/** Writes the text to a new file in a folder that other users cannot look into. */
export async function writeInputFile(text: string): Promise<InputFile> {
  const folder = await mkdtemp(join(tmpdir(), "redrive-"));
  const path = join(folder, "input.json");
  // The command may have removed the folder itself.
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    await writeFile(path, text, { mode: 0o600, flag: "wx" });
  } catch (error) {
    await remove();
    throw error;
  }
  return { path, remove };
}
