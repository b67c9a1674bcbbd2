// What bench/postgres-growth.mjs writes for the docs: a plain bar plot as SVG, and a page with the table.

const WIDTH = 720;
const LEFT = 300;
const ROW = 26;
const TOP = 40;

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const grouped = (value) => Math.round(value).toLocaleString("en-US");

/** Numbers of six digits and more in a name, as people read them. */
const named = (name) => name.replaceAll(/\d{4,}/g, (digits) => grouped(Number(digits)));

/** A bar per measured row: jobs a second that are claimed and settled. */
export function plot(rows) {
  const bars = rows.filter(({ rate }) => rate !== undefined);
  const most = Math.max(...bars.map(({ rate }) => rate));
  const height = TOP + bars.length * ROW + 16;
  const lines = bars.map(({ name, rate }, at) => {
    const y = TOP + at * ROW;
    const length = Math.max(1, Math.round((rate / most) * (WIDTH - LEFT - 90)));
    return `<text x="${LEFT - 10}" y="${y + 15}" text-anchor="end">${escaped(named(name))}</text>
<rect x="${LEFT}" y="${y + 3}" width="${length}" height="16" fill="#4a7aa7"/>
<text x="${LEFT + length + 8}" y="${y + 15}">${grouped(rate)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="13" fill="#333">
<rect width="${WIDTH}" height="${height}" fill="#fff"/>
<text x="${LEFT}" y="24" font-weight="bold">jobs claimed and settled a second</text>
${lines.join("\n")}
</svg>
`;
}

/** The page. */
export function page({ rows, pruned }) {
  const ms = (value) => (value === undefined ? "" : value.toFixed(1));
  const table = rows.map(
    ({ name, rate, lookMs, claimMs, settleMs, megabytes }) =>
      `| ${named(name)} | ${rate === undefined ? "" : grouped(rate)} | ${ms(lookMs)} | ${ms(claimMs)} | ${ms(settleMs)} | ${grouped(megabytes)} |`,
  );
  return `# Growth on Postgres

How fast one process claims and settles, 500 jobs at a time and one set after the other, while more and more is kept. Written by
\`npm run prove -- growth\`, on two shared cores, \`fsync\` and \`synchronous_commit\` on; only the ratios travel to another machine.

![Jobs claimed and settled a second](postgres-growth.svg)

| with | jobs/s | look, ms | claim, ms | settle, ms | tables, MB |
| --- | --- | --- | --- | --- | --- |
${table.join("\n")}

- Finished and scheduled jobs slow no claim. They cost only their space.
- Pruning ${grouped(pruned.pruned)} jobs took ${grouped(pruned.seconds)} s, ${ms(pruned.chunkMs)} ms for each chunk of 1,000. Plain autovacuum makes the room usable again; the
  files do not shrink, and need not: what comes next goes there. There is no \`VACUUM FULL\` in this table.
- A transaction that stays open for long (a report, a forgotten psql, a replica that lags) keeps Postgres from removing the rows
  of jobs that workers take meanwhile. The search for the next job then steps over all of them. Once that takes 10 ms, a process
  notes where the waiting jobs begin and starts there for a second at a time: one look a second is slow, claims are not. A job
  that is committed late, with a due time before that place, may wait for that second.
`;
}
