// Lists the rights that the role of a connection lacks. The owner of the schema has all; other roles need grants, again
// after every migration that adds a table.
import type { Ask } from "./driver.ts";

/** The missing rights in a schema, such as `insert, update on job`. The sequence of an identity column needs none. */
export async function missingRights(ask: Ask, s: string): Promise<string[]> {
  const text = `select string_agg(wanted, ', ' order by n) || ' on ' || relname
    from pg_class
    cross join lateral unnest(case relkind when 'r' then array['select', 'insert', 'update', 'delete'] else array['usage'] end)
      with ordinality as t(wanted, n)
    where relnamespace = '${s}'::regnamespace
      and (relkind = 'r' or relkind = 'S' and not exists (select from pg_depend where objid = pg_class.oid and deptype = 'i'))
      and not case relkind when 'r' then has_table_privilege(pg_class.oid, wanted) else has_sequence_privilege(pg_class.oid, wanted) end
    group by relname order by relname`;
  const rows = await ask({ text });
  return rows.map(([missing]) => missing as string);
}
