// `redrive tokens`: who may call the HTTP API. Tokens are in the store, so that all servers share them.
import type { NewToken, TokenView } from "../http/tokens.ts";
import { isoTime } from "../operate/json-form.ts";
import { processActor } from "../system/actor.ts";
import { realSystem } from "../system/real.ts";
import { type Cli, defined, examples, textual, whyFlag, whyOf } from "./command.ts";
import { EXIT } from "./exit.ts";
import { relativeTime } from "./format.ts";
import type { Session } from "./session.ts";
import { tableOf } from "./table.ts";

const NOTES = `
Roles: producer (enqueues, and looks at jobs whose ids it knows), viewer (looks),
operator (also changes), admin (also removes, and sees who did what). The right
to see payloads is separate; an admin has it. The secret is shown once: the store
keeps only its digest.`;

/** Registers `tokens`. */
export function register(cli: Cli): void {
  const { command } = cli;
  const add = command
    .command("add <name>")
    .description("make a token; its name is the actor in the event log")
    .option("--role <role>", "producer, viewer, operator or admin", "viewer")
    .option("--payloads", "let it see payloads, results and progress")
    .option("--audit", "let it see who did what in the event log")
    .option("--expires <duration>", "how long it is good (default forever)")
    .addHelpText("after", NOTES);
  whyFlag(add);
  examples(add, cli, ["tokens add ada --role operator --payloads --expires 90d", "tokens add web --role producer"]);
  cli.act(add, async (session, [name], flags) => {
    const tokens = await opened(session);
    const given = defined({
      role: textual(flags.role),
      payloads: flags.payloads === true ? true : undefined,
      audit: flags.audit === true ? true : undefined,
      expires: textual(flags.expires),
    }) as NewToken;
    const { token, view } = await tokens.add(name as string, given, whyOf(flags));
    session.show({ ...tokenForm(view), token }, () => `${token}\n`);
  });
  const list = command.command("list").description("list the tokens, without their secrets");
  examples(list, cli, ["tokens list"]);
  cli.act(list, async (session) => {
    const views = await (await opened(session)).list();
    session.show({ items: views.map(tokenForm) }, () =>
      views.length === 0
        ? `No tokens. Make one: ${session.suggest("tokens add NAME --role viewer")}\n`
        : tokensTable(views, session),
    );
  });
  const revoke = whyFlag(command.command("revoke <name>").description("end a token; servers learn of it within 2s"));
  examples(revoke, cli, ["tokens revoke ada"]);
  cli.act(revoke, async (session, [name], flags) => {
    const revoked = await (await opened(session)).revoke(name as string, whyOf(flags));
    session.answer({ name, revoked }, () =>
      revoked ? `The token ${name} is revoked.\n` : `There is no token ${name}.\n`,
    );
    return revoked ? EXIT.ok : EXIT.failed;
  });
}

async function opened(session: Session) {
  const { store } = await session.open({ makesFolder: true });
  const { openTokens } = await import("../http/tokens.ts");
  return openTokens({ store, log: session.log, actor: session.io.env.REDRIVE_ACTOR?.trim() || processActor() });
}

function tokenForm({ at, expiresAt, usedAt, ...view }: TokenView): object {
  return { ...view, at: isoTime(at), expiresAt: isoTime(expiresAt), usedAt: isoTime(usedAt) };
}

function tokensTable(views: readonly TokenView[], session: Session): string {
  const now = realSystem.now();
  return tableOf(views, session, [
    { title: "NAME", least: 8, of: ({ name }) => name },
    { title: "ROLE", of: ({ role }) => role },
    {
      title: "ALSO",
      of: ({ payloads, audit }) => [...(payloads ? ["payloads"] : []), ...(audit ? ["audit"] : [])].join(", "),
    },
    { title: "EXPIRES", of: ({ expiresAt }) => (expiresAt === null ? "never" : relativeTime(expiresAt, now)) },
    { title: "USED", of: ({ usedAt }) => (usedAt === null ? "never" : relativeTime(usedAt, now)) },
    { title: "MADE BY", least: 8, optional: true, of: ({ by }) => by },
  ]);
}
