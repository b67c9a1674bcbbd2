// `redrive migrate`: creates the store or upgrades its schema, or shows what that would do.
import { type Cli, examples } from "./command.ts";

/** Registers `migrate`. */
export function register(cli: Cli): void {
  const command = cli.command
    .description("Create the store, or upgrade its schema. Safe to run twice and from several processes at once.")
    .option("--plan", "only print the SQL that would run");
  examples(command, cli, ["migrate", "migrate --plan"]);
  cli.act(command, async (session, _args, flags) => {
    const { shown } = session.address;
    const { from, to, readableBy, statements } = await (await session.address.inspect()).schema();
    if (flags.plan === true) {
      session.show({ from, to, readableBy, statements }, () =>
        statements.length === 0
          ? `-- ${shown} has schema version ${from}: nothing to do.\n`
          : `-- ${shown}: schema version ${from} to ${to}, then readable by version ${readableBy} and newer\n${statements.join("\n")}`,
      );
      return;
    }
    await session.open({ makesFolder: true });
    session.answer({ from, to }, () =>
      from === to
        ? `${shown} has schema version ${to}: nothing to do.\n`
        : `${shown} is now at schema version ${to} (was ${from}).\n`,
    );
  });
}
