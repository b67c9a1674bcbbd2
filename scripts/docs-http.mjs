// The reference of the HTTP API, and the table of paths that the client has, from the route objects.

const TITLES = {
  session: "Sessions",
  overview: "Overview",
  events: "Events",
  health: "Health",
  metrics: "Metrics",
  openapi: "OpenAPI document",
  jobs: "Jobs",
  runs: "Runs",
  bulk: "Bulk changes",
  letters: "Dead letters",
  causes: "Causes",
  plans: "Plans",
  redrives: "Redrive runs",
  repairs: "Repairs",
  services: "Services",
  queues: "Queues",
  pauses: "Pauses",
  limits: "Limits",
  schedules: "Schedules",
  workers: "Workers",
  stuck: "Stuck runs",
  types: "Job types",
  policies: "Policies",
  alerts: "Alerts",
};

/** The table of paths as a source file. */
export function pathsFile(routes) {
  const rows = routes.map(({ name, method, path, query }) => {
    const names = Object.keys(query).map((each) => JSON.stringify(each));
    return `  ${JSON.stringify(name)}: [${JSON.stringify(method)}, ${JSON.stringify(path)}, [${names.join(", ")}]],`;
  });
  return [
    "// The method, path and query fields of every route, for the client, which must not load the schemas. Made by",
    "// `npm run docs` from the routes.",
    "// biome-ignore format: one line for each route",
    "/** By the name of the route. */",
    "export const PATHS: Readonly<Record<string, readonly [method: string, path: string, query: readonly string[]]>> = {",
    ...rows,
    "};",
    "",
  ].join("\n");
}

/** The page. */
export function httpPage(routes, openApi, prefix, status) {
  const document = openApi();
  const resources = [...new Set(routes.map(({ name }) => name.split(".")[0]))];
  const parts = resources.map((resource) => {
    const own = routes.filter(({ name }) => name.split(".")[0] === resource);
    return `## ${TITLES[resource]}\n\n${own.map((route) => section(route, document, prefix)).join("\n")}`;
  });
  return `${HEAD}
${rolesTable(routes, prefix)}

## Errors

Every error is \`{ code, message, hint?, details?, requestId }\`. Codes of the library are in [errors.md](errors.md).

| status | codes |
| --- | --- |
${statusRows(status)}

${parts.join("\n")}`;
}

const HEAD = `# HTTP API

The routes of \`redrive/http\` and \`redrive up\`. [guides/http.md](../guides/http.md) says how to mount and call it; the same
as a document for programs is at \`/api/v1/openapi.json\`. This page is made from the routes (\`npm run docs\`).

Lists take \`limit\` (1 to 200; default 50) and \`cursor\`, and answer \`{ items, next, seenTo? }\`. Documents have the
fields of the command line's \`--json\`; \`payload\`, \`result\` and \`progress\` only with the right to see payloads.
`;

function statusRows(status) {
  const codes = new Map();
  for (const [code, number] of Object.entries(status)) codes.set(number, [...(codes.get(number) ?? []), `\`${code}\``]);
  return [...codes]
    .toSorted(([a], [b]) => a - b)
    .map(([number, names]) => `| ${number} | ${names.join(", ")} |`)
    .join("\n");
}

function rolesTable(routes, prefix) {
  const rows = routes.map(
    ({ name, method, path, role, payloads }) =>
      `| \`${method} ${prefix}${path}\` | \`${name}\` | ${role}${payloads ? " + payloads" : ""} |`,
  );
  return [
    "## Routes and rights",
    "",
    "`anyone` needs no token; `any` a token of any role. An operator may do what a viewer and a producer may, an admin all.",
    "",
    "| route | name in the client | needs |",
    "| --- | --- | --- |",
    ...rows,
  ].join("\n");
}

function section(route, document, prefix) {
  const { name, method, path, says } = route;
  const operation = document.paths[`${prefix}${path}`][method.toLowerCase()];
  const lines = [`### ${name}`, "", `\`${method} ${prefix}${path}\`: ${says}`, ""];
  const query = operation.parameters.filter((each) => each.in === "query");
  if (query.length > 0) lines.push("Query:", "", ...query.map(fieldLine), "");
  const body = operation.requestBody?.content["application/json"].schema;
  if (body) lines.push(...bodyLines(body, document));
  const answer = operation.responses[200]?.content;
  if (answer) lines.push(`Answer: ${answerText(answer)}`, "");
  return lines.join("\n");
}

const fieldLine = ({ name, required, schema, description }) =>
  `- \`${name}\`${required ? " (required)" : ""}: ${kindOf(schema)}${description ? `. ${description}` : ""}`;

function bodyLines(schema, document) {
  const whole = resolved(schema, document);
  if (whole.anyOf) return ["Body, one of:", "", ...whole.anyOf.map((each) => `- ${kindOf(each)}`), ""];
  const fields = Object.entries(whole.properties ?? {});
  if (fields.length === 0) return ["Body: any JSON, kept byte for byte.", ""];
  const rows = fields.map(([name, each]) => {
    const { description, ...rest } = each;
    return fieldLine({ name, required: whole.required?.includes(name), schema: rest, description });
  });
  return ["Body:", "", ...rows, ""];
}

function answerText(content) {
  const [[media, { schema }]] = Object.entries(content);
  if (media !== "application/json") return `\`${media}\``;
  return kindOf(schema);
}

function resolved(schema, document) {
  if (!schema.$ref) return schema;
  return document.components.schemas[schema.$ref.split("/").at(-1)];
}

/** A schema in a few words. */
function kindOf(schema, depth = 0) {
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.enum) return schema.enum.map((each) => `\`${each}\``).join(", ");
  if (schema.const !== undefined) return `\`${schema.const}\``;
  if (schema.anyOf) return schema.anyOf.map((each) => kindOf(each, depth)).join(" or ");
  if (schema.type === "array") return `array of ${kindOf(schema.items ?? {}, depth + 1)}`;
  if (schema.type === "object" && schema.properties && depth < 2) {
    const fields = Object.entries(schema.properties).map(([name, each]) => {
      const optional = schema.required?.includes(name) ? "" : "?";
      return `${name}${optional}: ${kindOf(each, depth + 1)}`;
    });
    return `{ ${fields.join("; ")} }`;
  }
  const bounds = [
    schema.minimum === undefined ? null : `from ${schema.minimum}`,
    schema.maximum === undefined ? null : `to ${schema.maximum}`,
    schema.maxLength === undefined ? null : `up to ${schema.maxLength} characters`,
  ].filter((each) => each !== null);
  const type = Array.isArray(schema.type) ? schema.type.join(" or ") : (schema.type ?? "any JSON");
  return bounds.length === 0 ? type : `${type} ${bounds.join(" ")}`;
}
