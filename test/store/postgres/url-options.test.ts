// Settings for the server in the URL of the store: they are sent beside ours, which win.
import { expect, inject, it, onTestFinished } from "vitest";
import { createPostgresStore } from "../../../src/store/postgres/index.ts";
import { openDependencies } from "../../../src/store/postgres/dependencies.ts";

const SERVER = inject("postgres18");
const NAMES = ["work_mem", "jit", "plan_cache_mode", "enable_seqscan", "default_transaction_isolation"];
const OURS = ["off", "force_generic_plan", "off", "read committed"];
const THEIRS = `options=${encodeURIComponent("-c work_mem=5MB -c jit=on")}`;

/** What these settings are on a connection to this store. */
async function settings(url: string): Promise<unknown> {
  const { db } = openDependencies({ url }, {});
  onTestFinished(() => db.close());
  const [row] = await db.ask({ text: `select ${NAMES.map((name) => `current_setting('${name}')`).join(", ")}` });
  return row;
}

it("keeps our settings where the URL has none, and where it has some", async () => {
  expect(await settings(SERVER)).toEqual([expect.any(String), ...OURS]);
  expect(await settings(`${SERVER}?${THEIRS}`)).toEqual(["5MB", ...OURS]);
  expect(await settings(`${SERVER}?options=-c+work_mem%3D9MB&schema=x&${THEIRS}`)).toEqual(["5MB", ...OURS]);
});

it("sends those of the URL alone where a pooler stands between, which would refuse ours", async () => {
  expect(await settings(`${SERVER}?pooler=true&${THEIRS}`)).toEqual(["5MB", "on", "auto", "on", "read committed"]);
});

it.each([["-c nosuch=1"], ["nonsense"]])("says so where the server takes them for wrong: %s", async (options) => {
  const store = createPostgresStore({ url: `${SERVER}?options=${encodeURIComponent(options)}` });
  onTestFinished(() => store.close());
  await expect(store.count()).rejects.toMatchObject({
    code: "store_unusable",
    message: expect.stringMatching(/refused the connection: .*Check the options of the store URL/),
  });
});
