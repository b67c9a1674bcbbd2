// The page about the command line, made of what the program itself says: every command's help, found by walking from
// the first one. `run` is the command line as a function, from dist or from src.

const HEAD = `# Command line

<!-- Made by \`node scripts/docs.mjs\` from the program's own help. Change that, not this page. -->

\`npx redrive\` where the package is installed, \`node bin/redrive.js\` in a checkout after \`npm run build\`. Answers go to stdout,
logs and progress to stderr; \`NO_COLOR\` is respected. With \`--json\` the answer is one JSON document; lists are
\`{"items":[…],"next":cursor|null}\`. Flags beat environment variables, which beat the config file.
`;

/** The page. */
export async function cliPage(run) {
  const sections = [];
  const visit = async (path) => {
    const text = await helpOf(run, path);
    sections.push(`## ${["redrive", ...path].join(" ")}\n\n\`\`\`text\n${text.trim()}\n\`\`\`\n`);
    for (const name of commandsIn(text)) if (path.length < 3) await visit([...path, name]);
  };
  await visit([]);
  return `${HEAD}\n${sections.join("\n")}`;
}

async function helpOf(run, path) {
  let text = "";
  const sink = { write: (chunk) => (text += chunk), columns: 100, isTTY: false };
  const nothing = { write: () => true, columns: 100, isTTY: false };
  await run([...path, "--help"], {
    stdin: [],
    stdout: sink,
    stderr: nothing,
    env: { NO_COLOR: "1" },
    cwd: ".",
    program: "redrive",
  });
  return text;
}

/** The names under "Commands:", two spaces in. */
function commandsIn(help) {
  const [, part = ""] = /\nCommands:\n([\s\S]*?)(?:\n\n|$)/.exec(help) ?? [];
  return [...part.matchAll(/^ {2}([a-z]+)/gm)].map(([, name]) => name).filter((name) => name !== "help");
}
