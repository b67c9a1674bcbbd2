// Lets a person change a text in an editor, in a file that only they can read.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** A text in a file of its own. */
export interface EditedFile {
  readonly path: string;
  /** Opens the editor and waits for its end; answers the text, or why there is none. */
  edit(command: string): Promise<{ readonly text: string } | { readonly failed: string }>;
  remove(): void;
}

/** Writes the text into a new file. */
export function openEditedFile(name: string, text: string): EditedFile {
  const path = join(mkdtempSync(join(tmpdir(), "redrive-")), name);
  writeFileSync(path, text, { mode: 0o600 });
  return {
    path,
    edit: (command) =>
      new Promise((resolve) => {
        // The variable holds a command of the user's own shell, such as `code --wait`.
        const child = spawn("/bin/sh", ["-c", `${command} "$1"`, "sh", path], { stdio: "inherit" });
        child.on("error", (error) => resolve({ failed: error.message }));
        child.on("exit", (code, signal) => {
          if (code !== 0)
            resolve({ failed: code === null ? `it was ended by ${signal}` : `it ended with code ${code}` });
          else resolve(readBack(path));
        });
      }),
    remove: () => rmSync(dirname(path), { recursive: true, force: true }),
  };
}

function readBack(path: string): { readonly text: string } | { readonly failed: string } {
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(path)) };
  } catch (error) {
    return { failed: `its file cannot be read: ${error instanceof Error ? error.message : String(error)}` };
  }
}
