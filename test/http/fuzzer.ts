// Requests made from the OpenAPI document alone: most of them good, with the ids that earlier answers named, the others
// broken in every way a caller has found. It judges nothing; it says what was asked and what came back.

/** A document of OpenAPI, as far as the fuzzer reads it. */
export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}
interface Operation {
  readonly operationId: string;
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
}
type Schema = Readonly<Record<string, unknown>>;

/** One request. */
export interface FuzzRequest {
  readonly route: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
}
/** What came back. */
export interface FuzzAnswer {
  readonly status: number;
  readonly text: string;
}
/** What the requests led to. */
export interface FuzzReport {
  readonly statuses: Readonly<Record<string, number>>;
  /** How many good answers each route gave. */
  readonly good: Readonly<Record<string, number>>;
  /** Requests that the server failed at. */
  readonly failed: readonly { readonly request: FuzzRequest; readonly answer: FuzzAnswer }[];
  /** Ids of the jobs that were made, and how many ways other routes made or removed some. */
  readonly made: ReadonlySet<string>;
  readonly removed: number;
}

/** How to ask. */
export interface Fuzzing {
  readonly document: Document;
  readonly requests: number;
  readonly random: () => number;
  readonly tokens: readonly string[];
  send(request: FuzzRequest): Promise<FuzzAnswer>;
  /** Requests at the same time. */
  readonly together?: number;
  /** Called after so many requests. */
  readonly onHundred?: (done: number) => void;
}

const NASTY = [
  "",
  " ",
  "' or 1=1 --",
  '"; drop table job; --',
  "a\u0000b",
  "\ud800",
  "__proto__",
  "constructor",
  "../../etc",
  "%00",
  "💥".repeat(100),
  "x".repeat(300),
  "x".repeat(5_000),
  "\r\nx: y",
  "-1h",
  "9007199254740993",
  "1e999",
  "NaN",
  "null",
  "*",
];
const NUMBERS = [-1, 0.5, 1e15, 2 ** 60, 1e308, -1e308, 5e-324, -0, 2 ** 31, 8.64e15 + 1, 253_402_300_800_000];
const ODD = [null, true, [], {}, [[]], { a: { b: 1 } }, "text", 7];
const POOL_MOST = 40;

/** What earlier answers named, by what it is. */
class Pools {
  readonly of = new Map<string, string[]>();
  readonly random: () => number;
  constructor(random: () => number) {
    this.random = random;
  }
  add(kind: string, value: unknown): void {
    if (typeof value !== "string" || value === "") return;
    const pool = this.of.get(kind) ?? [];
    this.of.set(kind, pool);
    if (pool.includes(value)) return;
    if (pool.length < POOL_MOST) pool.push(value);
    else pool[Math.floor(this.random() * POOL_MOST)] = value;
  }
  one(kind: string): string | undefined {
    const pool = this.of.get(kind) ?? [];
    return pool[Math.floor(this.random() * pool.length)];
  }
}

/** Asks so many times. */
export async function fuzz(fuzzing: Fuzzing): Promise<FuzzReport> {
  const { document, requests, random, tokens, send, together = 4, onHundred } = fuzzing;
  const maker = new Maker(document, random, tokens);
  const statuses: Record<string, number> = {};
  const good: Record<string, number> = {};
  const failed: { request: FuzzRequest; answer: FuzzAnswer }[] = [];
  const made = new Set<string>();
  let [begun, done, removed] = [0, 0, 0];
  for (const { operationId } of maker.operations) good[operationId] = 0;
  const turn = async (): Promise<void> => {
    while (begun < requests) {
      const request = maker.next(begun++);
      const answer = await send(request);
      statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
      if (answer.status >= 500) failed.push({ request, answer });
      if (answer.status < 300) {
        good[request.route] = (good[request.route] ?? 0) + 1;
        const documents = parsed(answer.text);
        for (const each of documents) maker.learn(request, each);
        if (request.route === "jobs.enqueue" || request.route === "schedules.run")
          for (const { id, duplicate } of documents as { id?: string; duplicate?: boolean }[])
            if (id !== undefined && duplicate !== true) made.add(id);
        if (request.route === "bulk.act") removed += (documents[0] as { removed?: number } | undefined)?.removed ?? 0;
      }
      done += 1;
      if (done % 100 === 0) onHundred?.(done);
    }
  };
  await Promise.all(Array.from({ length: together }, turn));
  return { statuses, good, failed, made, removed };
}

function parsed(text: string): Record<string, unknown>[] {
  const read = (each: string): Record<string, unknown>[] => {
    try {
      const value = JSON.parse(each) as unknown;
      return typeof value === "object" && value !== null ? [value as Record<string, unknown>] : [];
    } catch {
      return [];
    }
  };
  const whole = read(text);
  return whole.length > 0 ? whole : text.slice(0, 100_000).split("\n").flatMap(read);
}

type Place = Operation & { readonly method: string; readonly path: string };

/** Makes requests. */
class Maker {
  readonly operations: readonly Place[];
  readonly #schemas: Document["components"]["schemas"];
  readonly #random: () => number;
  readonly #tokens: readonly string[];
  readonly #pools: Pools;

  constructor(document: Document, random: () => number, tokens: readonly string[]) {
    this.#schemas = document.components.schemas;
    this.#random = random;
    this.#tokens = tokens;
    this.#pools = new Pools(random);
    this.operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
    );
  }

  /** The first requests go through all routes twice, the others by chance. */
  next(number: number): FuzzRequest {
    const { operations } = this;
    const round = number < operations.length * 2;
    const operation = round ? operations[number % operations.length] : this.#pick(operations);
    return this.#request(operation as Place, !round && this.#random() < 0.35);
  }

  /** Keeps the names of things in an answer. */
  learn({ route }: FuzzRequest, answer: Record<string, unknown>): void {
    const pools = this.#pools;
    const items = Array.isArray(answer["items"]) ? (answer["items"] as Record<string, unknown>[]) : [answer];
    pools.add("cursor", answer["next"]);
    for (const item of items) {
      if (route.startsWith("letters.") || route === "causes.letters") pools.add("dead", item["id"]);
      if (route.startsWith("jobs.") && typeof item["type"] === "string") pools.add("job", item["id"]);
      if (route.startsWith("causes.")) pools.add("fingerprint", item["fingerprint"]);
      if (route.startsWith("plans.")) pools.add("plan", item["id"]);
      if (route.startsWith("plans.")) pools.add("planned", item["run"]);
      if (route.startsWith("redrives.")) pools.add("run", item["id"]);
      if (item["revision"] !== undefined) pools.add("revision", item["revision"]);
    }
  }

  #pick<T>(values: readonly T[]): T {
    return values[Math.floor(this.#random() * values.length)] as T;
  }

  #request(operation: Place, isBroken: boolean): FuzzRequest {
    const { operationId: route, method, parameters, requestBody } = operation;
    const query = new URLSearchParams();
    let path = operation.path;
    for (const { name, in: where, required, schema } of parameters) {
      const value = (): string => String(this.#value(name, schema, route, isBroken && this.#random() < 0.5));
      if (where === "path") path = path.replace(`{${name}}`, () => encodeURIComponent(toWellFormed(value())));
      else if (required || this.#random() < (isBroken ? 0.3 : 0.12)) query.append(name, toWellFormed(value()));
    }
    if (isBroken && this.#random() < 0.1)
      query.append(this.#pick(["limit", "__proto__", "toString", "x"]), this.#pick(NASTY).slice(0, 50));
    const search = query.size === 0 ? "" : `?${query.toString()}`;
    const headers: Record<string, string> = { authorization: `Bearer ${this.#pick(this.#tokens)}` };
    const body = this.#body(operation, isBroken, headers);
    if (body !== null && isBroken && this.#random() < 0.05) delete headers["authorization"];
    if (route === "events.stream" || this.#random() < 0.02)
      headers["last-event-id"] = String(this.#pick([0, 5, "x", -1]));
    if (route === "causes.change" && this.#random() < 0.1)
      headers["if-match"] = `"${this.#pools.one("revision") ?? "none"}"`;
    if (requestBody && isBroken && this.#random() < 0.05)
      headers["idempotency-key"] = this.#pick(["once", "a b", "x".repeat(90)]);
    return { route, method, path: `${path}${search}`, headers, body };
  }

  #body(
    { requestBody, operationId: route, method }: Place,
    isBroken: boolean,
    headers: Record<string, string>,
  ): FuzzRequest["body"] {
    if (method === "GET") return null;
    if (method === "DELETE") return null;
    headers["content-type"] =
      isBroken && this.#random() < 0.05
        ? this.#pick(["text/plain", "x", "application/json;charset=x"])
        : "application/json";
    const content = requestBody?.content ?? {};
    const schema = content["application/json"]?.schema ?? {};
    const text = (): string => {
      const value = this.#value("body", schema, route, isBroken && this.#random() < 0.4);
      return JSON.stringify(value) ?? "null";
    };
    if ("application/x-ndjson" in content && this.#random() < 0.3) {
      headers["content-type"] = "application/x-ndjson";
      const lines = Array.from({ length: Math.floor(this.#random() * 5) + 1 }, text);
      return lines.join(this.#pick(["\n", "\r\n", "\n\n"])) + this.#pick(["", "\n"]);
    }
    if (!isBroken) return text();
    const roll = this.#random();
    if (roll < 0.05) return text().slice(0, -1);
    if (roll < 0.07) return "[".repeat(1_000);
    if (roll < 0.09) return new Uint8Array([0x7b, 0x22, 0xff, 0xfe]);
    if (roll < 0.1) return `{"a":"${"x".repeat(2_000_000)}"}`;
    if (roll < 0.13) return text().replace("{", '{"__proto__":{"a":1},');
    if (roll < 0.16) return text().replace("{", '{"unknown":1,');
    if (roll < 0.18) return `\ufeff${text()}`;
    return text();
  }

  /** A value of a schema, or one that may be anything. */
  #value(name: string, schema: Schema, route: string, isBroken: boolean): unknown {
    if (isBroken && this.#random() < 0.35)
      return this.#pick<() => unknown>([() => this.#pick(NASTY), () => this.#pick(NUMBERS), () => this.#pick(ODD)])();
    const ref = schema["$ref"];
    if (typeof ref === "string")
      return this.#value(name, this.#schemas[ref.split("/").at(-1) ?? ""] ?? {}, route, isBroken);
    const any = (schema["anyOf"] ?? schema["oneOf"]) as readonly Schema[] | undefined;
    if (any) return this.#value(name, this.#pick(any), route, isBroken);
    if ("const" in schema) return schema["const"];
    if (Array.isArray(schema["enum"])) return this.#pick(schema["enum"] as unknown[]);
    switch (schema["type"]) {
      case "object":
        return this.#object(schema, route, isBroken);
      case "array": {
        const least = (schema["minItems"] as number | undefined) ?? 0;
        const length = Math.max(least, Math.floor(this.#random() * 3));
        return Array.from({ length }, () =>
          this.#value(singular(name), (schema["items"] as Schema | undefined) ?? {}, route, isBroken),
        );
      }
      case "string":
        return this.#text(name, route, schema);
      case "boolean":
        return this.#random() < 0.5;
      case "integer":
      case "number": {
        const least = (schema["minimum"] as number | undefined) ?? 0;
        const most = Math.min((schema["maximum"] as number | undefined) ?? least + 20, least + 20);
        const found = least + this.#random() * (most - least);
        return name === "runAt" || name === "from" || name === "until" ? 1_700_000_000_000 : Math.round(found);
      }
      case "null":
        return null;
      default:
        return this.#anything();
    }
  }

  #anything(): unknown {
    return this.#pick<unknown>([
      { n: 1 },
      { n: Math.floor(this.#random() * 9), at: "x" },
      [],
      "text",
      1.5,
      null,
      { "a\u0000": "\ud800" },
      { n: 2, "": {} },
    ]);
  }

  #object(schema: Schema, route: string, isBroken: boolean): object {
    const properties = (schema["properties"] ?? {}) as Readonly<Record<string, Schema>>;
    const required = (schema["required"] ?? []) as readonly string[];
    const made: Record<string, unknown> = {};
    for (const [name, each] of Object.entries(properties)) {
      const isNeeded = required.includes(name)
        ? !(isBroken && this.#random() < 0.1)
        : this.#random() < (isBroken ? 0.4 : 0.15);
      if (isNeeded) made[name] = this.#value(name, each, route, isBroken);
    }
    // What is found by a filter needs the count that the caller saw.
    if (route === "bulk.act" && "target" in made && this.#random() < 0.7) {
      made["target"] = this.#random() < 0.8 ? { ids: [this.#text("id", route, {})] } : { filter: { type: "fine" } };
      made["expect"] = { count: Math.floor(this.#random() * 5) };
      for (const name of ["delay", "runAt", "priority"]) if (made["action"] !== "reschedule") delete made[name];
    }
    if (route === "schedules.set" && "job" in made && this.#random() < 0.7) return { every: "1h", job: "fine" };
    if (route === "redrives.start" && this.#random() < 0.7) return { alongside: true };
    if (route === "plans.make" && "type" in properties && "text" in properties)
      return this.#random() < 0.6 ? { type: "mail" } : { ids: [this.#pools.one("dead") ?? "x"] };
    if (route === "causes.change" && this.#random() < 0.7)
      return this.#pick([{ note: "seen" }, { state: "open" }, { state: "muted", for: "1h" }, { owner: null }]);
    return made;
  }

  #text(name: string, route: string, schema: Schema): string {
    const pools = this.#pools;
    const [resource = ""] = route.split(".");
    const own: Readonly<Record<string, () => string | undefined>> = {
      id: () =>
        ({
          plans: pools.one("plan"),
          redrives: route === "redrives.start" ? pools.one("planned") : pools.one("run"),
          jobs: ["jobs.edit", "jobs.undo", "jobs.retry"].includes(route) ? pools.one("dead") : pools.one("job"),
          repairs: pools.one("dead"),
        })[resource] ?? pools.one(this.#random() < 0.5 ? "dead" : "job"),
      job: () => (resource === "letters" ? pools.one("dead") : "fine"),
      fingerprint: () => pools.one("fingerprint"),
      cursor: () => pools.one("cursor"),
      type: () => this.#pick(["fine", "mail", "mail", "other"]),
      queue: () => "default",
      service: () => "smtp",
      name: () => (resource === "schedules" ? "nightly" : "smtp"),
      patch: () => this.#pick(['{"n":1}', '{"n":null,"m":2}']),
      token: () => this.#pick(this.#tokens),
      code: () => "wrong",
      cron: () => "0 3 * * *",
      timezone: () => "Europe/Berlin",
      delay: () => "5m",
      deadline: () => "1h",
      for: () => "10m",
      every: () => "5m",
      jitter: () => "1s",
      olderThan: () => "1m",
      step: () => "10m",
      judgeWithin: () => "5m",
      from: () => "-2h",
      until: () => this.#pick(["-1m", "2030-01-01T00:00:00Z"]),
      runAt: () => "2030-01-01T00:00:00Z",
      initial: () => "1s",
      min: () => "1s",
      max: () => "1m",
      factor: () => "2s",
    };
    const found = Object.hasOwn(own, name) ? own[name]?.() : undefined;
    if (found !== undefined) return found;
    if (name === "id" && route === "jobs.enqueue") return `f-${Math.floor(this.#random() * 1e9)}`;
    return `t${"x".repeat(Math.max(0, ((schema["minLength"] as number | undefined) ?? 0) - 1))}${Math.floor(this.#random() * 5)}`;
  }
}

function singular(name: string): string {
  return name.endsWith("s") ? name.slice(0, -1) : name;
}

/** An address cannot hold half a character. */
function toWellFormed(text: string): string {
  return (text as string & { toWellFormed(): string }).toWellFormed();
}
