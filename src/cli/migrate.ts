// `redrive migrate`: brings the schema up to date, or says what that would do.
import { type Cli, examples } from "./command.ts";
import { SCHEMA_VERSION, schemaVersion, statementsFrom } from "./database-file.ts";

/** Registers `migrate`. */
export function registerMigrate(cli: Cli): void {
  const command = cli.program
    .command("migrate")
    .summary("make the store, or bring its schema up to date")
    .description(
      "Make the store, or bring its schema up to date. Safe to run twice and from several processes at once.",
    )
    .option("--plan", "only print the SQL that would run");
  examples(command, cli, ["migrate", "migrate --plan"]);
  cli.act(command, async (session, _args, flags) => {
    const { path } = session.address;
    const from = schemaVersion(path);
    if (flags.plan === true) {
      const statements = statementsFrom(from);
      session.show({ from, to: SCHEMA_VERSION, statements }, () =>
        statements.length === 0
          ? `-- ${path} has schema version ${from}: nothing to do.\n`
          : `-- ${path}: schema version ${from} to ${SCHEMA_VERSION}\n${statements.join("\n")}`,
      );
      return;
    }
    await session.open();
    const to = schemaVersion(path);
    session.answer({ from, to }, () =>
      from === to
        ? `${path} has schema version ${to}: nothing to do.\n`
        : `${path} is now at schema version ${to} (was ${from}).\n`,
    );
  });
}
