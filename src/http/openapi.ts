// The OpenAPI 3.1 document, made from the routes. Loaded only when it is asked for.
import { toJsonSchema, toJsonSchemaDefs } from "@valibot/to-json-schema";
import type * as v from "valibot";
import { VERSION } from "../core/version.ts";
import * as documents from "./documents.ts";
import { STATUS } from "./http-error.ts";
import { isText, isWrite, type Entries, type Route } from "./route.ts";
import { PREFIX, ROUTES } from "./routes.ts";

const DEFINITIONS = { ...documents } as unknown as Record<string, v.GenericSchema>;
const overrideRef = ({ referenceId }: { readonly referenceId: string }): string =>
  `#/components/schemas/${referenceId}`;
const OPTIONS = { target: "draft-2020-12", errorMode: "ignore", overrideRef } as const;

/** A schema as JSON Schema; documents are named once. */
function schemaOf(schema: v.GenericSchema): object {
  const {
    $schema: _schema,
    $defs: _defs,
    ...rest
  } = toJsonSchema(schema, {
    ...OPTIONS,
    definitions: DEFINITIONS,
  }) as Record<string, unknown>;
  return rest;
}

function parametersOf(entries: Entries, where: "path" | "query"): object[] {
  return Object.entries(entries).map(([name, schema]) => {
    const { description, ...rest } = schemaOf(schema) as { description?: string };
    const required = where === "path" || schema.type !== "optional";
    return { name, in: where, required, ...(description && { description }), schema: rest };
  });
}

function bodyOf({ body, accepts = [] }: Route): object {
  if (body === null) return {};
  const schema = body === "payload" ? {} : schemaOf(body);
  const lines = Object.fromEntries(accepts.map((media) => [media, { schema: { type: "string" } }]));
  return { requestBody: { required: true, content: { "application/json": { schema }, ...lines } } };
}

function answerOf({ answer, status = 200, says, accepts = [] }: Route): object {
  if (isText(answer))
    return { [status]: { description: answer.says, content: { [answer.text]: { schema: { type: "string" } } } } };
  const lines = Object.fromEntries(accepts.map((media) => [media, { schema: { type: "string" } }]));
  const done = { description: says, content: { "application/json": { schema: schemaOf(answer) }, ...lines } };
  return status === 200 ? { 200: done } : { 200: done, [status]: done };
}

/** The codes that a route may answer. */
function errorsOf(route: Route): object {
  const codes = new Set([400, 401, 403, 404, 406, 421, 429, 503, 504]);
  if (route.method !== "GET") for (const code of [409, 412, 413, 415, 422]) codes.add(code);
  const content = { "application/json": { schema: { $ref: "#/components/schemas/error" } } };
  return Object.fromEntries(
    [...codes]
      .toSorted((a, b) => a - b)
      .map((code) => {
        const names = Object.entries(STATUS).flatMap(([name, status]) => (status === code ? [name] : []));
        return [code, { description: names.join(", "), content }];
      }),
  );
}

function operationOf(route: Route): object {
  const { name, says, role, payloads = false, params, query } = route;
  return {
    operationId: name,
    tags: [name.split(".")[0]],
    summary: says,
    ...(role === "anyone" && { security: [] }),
    "x-role": role,
    "x-payloads": payloads,
    "x-writes": isWrite(route),
    parameters: [...parametersOf(params, "path"), ...parametersOf(query, "query")],
    ...bodyOf(route),
    responses: { ...answerOf(route), ...errorsOf(route) },
  };
}

let made: object | null = null;

/** The document. */
export function openApi(): object {
  return (made ??= make());
}

function make(): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of ROUTES as readonly Route[]) {
    const path = (paths[`${PREFIX}${route.path}`] ??= {});
    path[route.method.toLowerCase()] = operationOf(route);
  }
  return {
    openapi: "3.1.0",
    jsonSchemaDialect: "https://json-schema.org/draft/2020-12/schema",
    info: {
      title: "Redrive",
      version: VERSION,
      description: "The retry queue over HTTP. Times are ISO 8601 by the store's clock. See docs/guides/http.md.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    security: [{ bearer: [] }, { cookie: [] }],
    paths,
    components: {
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer" },
        cookie: { type: "apiKey", in: "cookie", name: "redrive_4180" },
      },
      schemas: toJsonSchemaDefs(DEFINITIONS, OPTIONS),
    },
  };
}
