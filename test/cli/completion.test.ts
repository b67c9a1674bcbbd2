// `redrive completion`: what a shell offers is what the help shows, asked in a real bash; the scripts of the other shells
// are read by their shells where those are installed.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createBench } from "../support/cli.ts";

const isHere = (shell: string): boolean => spawnSync(shell, ["--version"]).status === 0;

async function scriptFor(shell: string): Promise<string> {
  const { code, out } = await createBench().run(["completion", shell]);
  expect(code).toBe(0);
  return out;
}

/** Runs a script in a shell without the files of whoever runs the tests. From a file: not every shell reads a socket. */
function inShell(shell: string, flags: readonly string[], script: string): string {
  const file = createBench().write("script", script);
  const { status, stdout, stderr } = spawnSync(shell, [...flags, file], { encoding: "utf8", timeout: 60_000 });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return stdout;
}

/** What bash offers for each of these lines; the cursor stands at the end. */
async function offered(lines: readonly string[]): Promise<Map<string, string[]>> {
  const asked = lines.map((line) => {
    const words = line.split(" ").map((word) => `'${word}'`);
    return `COMP_WORDS=(${words.join(" ")}); COMP_CWORD=${words.length - 1}; _redrive; echo "\${COMPREPLY[*]}"`;
  });
  const out = inShell("bash", ["--norc"], `${await scriptFor("bash")}\n${asked.join("\n")}\n`);
  const answers = out.split("\n");
  return new Map(lines.map((line, at) => [line, (answers[at] ?? "").split(" ").filter((word) => word !== "")]));
}

/** Each command of the reference page with the commands and flags that its help lists. */
function documented(): { path: string; names: string[]; flags: string[] }[] {
  const page = readFileSync(new URL("../../docs/reference/cli.md", import.meta.url), "utf8");
  return [...page.matchAll(/^## (redrive.*)\n\n```text\n([\s\S]*?)\n```/gm)].map(([, path = "", help = ""]) => {
    const listed = /\nCommands:\n([\s\S]*?)(?:\n\n|$)/.exec(help)?.[1] ?? "";
    const options = [...help.matchAll(/\n(?:Options|Global Options):\n([\s\S]*?)(?=\n\n|$)/g)].map(([, text]) => text);
    return {
      path,
      names: [...listed.matchAll(/^ {2}([a-z]+)/gm)].map(([, name = ""]) => name).filter((name) => name !== "help"),
      flags: [...options.join("\n").matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm)].map(([, flag = ""]) => flag),
    };
  });
}

/** What commands take that is one of a few words. */
const CHOICES: Readonly<Record<string, readonly string[]>> = {
  "redrive completion": ["bash", "zsh", "fish"],
  "redrive monitoring print": ["grafana", "alerts"],
};

describe.skipIf(!isHere("bash"))("completion in bash", () => {
  it("offers every command and every flag that the help lists, and no other", async () => {
    const commands = documented();
    expect(commands.length).toBeGreaterThan(40);
    const answers = await offered(commands.flatMap(({ path }) => [`${path} `, `${path} -`]));
    for (const { path, names, flags } of commands) {
      expect(answers.get(`${path} `), path).toEqual([...names, ...(CHOICES[path] ?? [])]);
      // The version is asked of the program, not of a command, though its help lists all global flags.
      const known = path === "redrive" ? flags : flags.filter((flag) => flag !== "--version");
      expect(answers.get(`${path} -`)?.toSorted(), path).toEqual(known.toSorted());
    }
  });

  it("completes what was begun, past flags and their values", async () => {
    const lines = {
      "redrive enq": ["enqueue"],
      "redrive --store sqlite:x.db jobs l": ["list"],
      "redrive jobs list --state dead --sor": ["--sort"],
      "redrive dlq nosuch": [],
    };
    expect(await offered(Object.keys(lines))).toEqual(new Map(Object.entries(lines)));
  });

  it("leaves values, and the command behind --, to the shell", async () => {
    const lines = [
      "redrive --config ",
      "redrive jobs list --type ",
      "redrive batch --input x -- no",
      "redrive enqueue ",
    ];
    for (const offers of (await offered(lines)).values()) expect(offers).toEqual([]);
  });

  it("is tied to the command by its name, with files where it offers nothing", async () => {
    const out = inShell("bash", ["--norc"], `${await scriptFor("bash")}\ncomplete -p redrive\n`);
    expect(out).toBe("complete -o default -F _redrive redrive\n");
  });
});

describe("the script", () => {
  it.skipIf(!isHere("zsh"))("for zsh is one that zsh reads", async () => {
    inShell("zsh", ["-f", "-n"], await scriptFor("zsh"));
  });

  it.skipIf(!isHere("fish"))("for fish offers commands and flags there", async () => {
    const asked = 'complete -C "redrive jobs li"; complete -C "redrive dlq list --reas"';
    const out = inShell("fish", ["--no-config"], `${await scriptFor("fish")}\n${asked}\n`);
    expect(out).toMatch(/^list\t.*\n--reason\t.*\n$/);
  });

  it("needs and makes no store", async () => {
    const bench = createBench();
    const env = { REDRIVE_STORE: "postgres://127.0.0.1:1/nosuch" };
    const { code, document } = await bench.json(["completion", "bash"], { env });
    expect({ code, document }).toEqual({ code: 0, document: { shell: "bash", script: await scriptFor("bash") } });
    expect(readdirSync(bench.folder)).toEqual([]);
  });

  it("is refused for a shell that is not known", async () => {
    const { code, err } = await createBench().run(["completion", "powershell"]);
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining("Allowed choices are bash, zsh, fish") });
  });
});
