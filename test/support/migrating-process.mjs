// A process of the next release that opens a store, which migrates it. Its arguments are the address of the built index,
// the kind of store, where it is, and the SQL of the next version, with `@` for the schema and its dot; it tells its
// parent when it begins and when it is done.
const [library, kind, place, planted] = process.argv.slice(2);
const load = (path) => import(new URL(path, library).href);
const tell = (message) => new Promise((resolve) => process.send(message, resolve));

const open = {
  async sqlite() {
    const { MIGRATIONS } = await load("store/sqlite/schema.js");
    const { createInlineSqliteStore } = await load("store/sqlite/inline.js");
    const migrations = [...MIGRATIONS, { sql: planted.replaceAll("@", ""), readableBy: MIGRATIONS.length }];
    return () => createInlineSqliteStore({ path: place, clock: Date.now, migrations });
  },
  async postgres() {
    const { MIGRATIONS } = await load("store/postgres/schema.js");
    const { createPostgresStore } = await load("store/postgres/index.js");
    const next = { sql: (schema) => planted.replaceAll("@", `${schema}.`), readableBy: MIGRATIONS.length };
    return () => createPostgresStore({ url: place }, { migrations: [...MIGRATIONS, next] });
  },
};

const opened = await open[kind]();
await tell("ready");
await new Promise((resolve) => process.once("message", resolve));
const store = opened();
await store.migrate();
await store.close();
await tell("done");
process.disconnect();
