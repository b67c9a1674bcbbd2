// One database for one measurement, gone afterwards, so that no measurement works among the dead rows of those before. Dropping
// one is also a checkpoint, so that none falls into the few seconds of the next.
import pg from "pg";

let made = 0;

/** Runs statements one after the other on a connection of their own; returns the rows of the last. */
export async function statements(url, ...texts) {
  const client = new pg.Client(url);
  await client.connect();
  try {
    let rows = [];
    for (const text of texts) ({ rows } = await client.query(text));
    return rows;
  } finally {
    await client.end();
  }
}

/** Runs the work on a new database of the server, given its URL. */
export async function inDatabase(server, work) {
  const name = `bench_${++made}`;
  await statements(server.url("postgres"), `create database ${name}`);
  try {
    return await work(server.url(name));
  } finally {
    await statements(server.url("postgres"), `drop database ${name} with (force)`);
  }
}

/** Writes out what was filled in, so that the checkpoint of a large filling does not fall into what is measured. */
export function writtenOut(url) {
  return statements(url, "checkpoint");
}
