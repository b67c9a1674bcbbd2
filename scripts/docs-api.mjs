// The pages about calls, the handler's context and events, made of the interfaces of src and their doc comments.

import { isOption, isWord } from "./docs-options.mjs";
import { code, docBefore, membersOf, signature, tableOf, unionOf } from "./declarations.mjs";

/** What `redrive.*` gives: an interface, and how a caller reaches it. */
const FACES = [
  ["Redrive", "redrive"],
  ["Jobs", "redrive.jobs"],
  ["DeadLetters", "redrive.deadLetters"],
  ["Causes", "redrive.causes"],
  ["Alerts", "redrive.alerts"],
  ["Redrives", "redrive.redrives"],
  ["Runs", "redrive.runs"],
  ["Stuck", "redrive.stuck"],
  ["Breakers", "redrive.breakers"],
  ["Schedules", "redrive.schedules"],
  ["RedriveWorker", "worker"],
  ["CircuitBreaker", "breaker"],
];

/** The shapes that calls answer with. */
const SHAPES = (
  "Job Failure Lease AttemptRecord JobDetails Explanation Reason Page " +
  "EnqueuedJob EnqueueSummary RunOutcome RecordsSummary RecordResult Alert WorkerCounts " +
  "DeadLetter DeadLetterDetails RemoveSummary Tally CauseCount CauseView CauseDetails LettersSeen CountedName ReleaseFailures RunRecord StuckRun " +
  "RedrivePlan PlanFacts PlanWarning CanaryProof RedriveRun RedriveRunView RedriveRunCounts FrozenSelection " +
  "RepairPreview Misfits Misfit RepairSummary EditAnswer PayloadVersion " +
  "BreakerView BreakerCounts LimitView QueueView PauseTarget Pause ScheduleView UpkeepView LoggedEvent"
).split(" ");

/** What a handler gets: an interface, and the handler that gets it. */
const CONTEXTS = [
  ["JobContext", "run(input, context)"],
  ["BatchContext", "runBatch(items, context)"],
  ["BatchItem", "runBatch(items, context)"],
  ["AttemptContext", "retryable.withContext((context, …) => …)"],
  ["Log", "context.log"],
];

const FIELD = { names: ["field", "type", "what it means"], marks: false };

const made = (title, text) => `# ${title}

<!-- Made by \`node scripts/docs.mjs\` from the doc comments in src. Change those, not this page. -->

${text}`;

/** The page about every call of a queue, the functions of the package, and what they answer with. */
export function apiPage(types, silent, functions) {
  const faces = FACES.map(([name, at]) => faceOf(types, silent, name, at));
  const calls = functions.map((name) => functionOf(types, silent, name));
  const shapes = SHAPES.map((name) => shapeOf(types, silent, name));
  const head = made(
    "API",
    `Every call of a queue, then the functions of the package, then the shapes that calls answer with. What a call accepts is in
[options](options.md), what a handler gets in [context](context.md), what \`redrive.on\` tells in [events](events.md), and what
a call rejects with in [errors](errors.md). Times are epoch milliseconds by the store's clock; names that end in \`Ms\` are
milliseconds.`,
  );
  const parts = [head, ...faces, "## Functions", ...calls, "## Shapes", ...shapes];
  return `${parts.join("\n\n")}\n`;
}

/** The page about what handlers get. */
export function contextPage(types, silent) {
  const sections = CONTEXTS.map(([name, to]) => {
    const { doc } = types.find(name);
    const { members } = membersOf(types.find(name), types);
    const table = tableOf(members, FIELD, (field) => silent(`${name}.${field}`));
    return [`## ${name}`, `${doc}\n\nGiven to ${code(to)}.`, table, ...seen(members, "context.md")].join("\n\n");
  });
  const head = made(
    "Context",
    `What Redrive hands to a handler beside its input. A handler fails by what it throws, or by returning \`transient\` or
\`permanent\`: see [failure classes](../concepts/failure-classes.md) and [batches](../guides/batches.md).`,
  );
  return `${[head, ...sections].join("\n\n")}\n`;
}

/** The page about events. */
export function eventsPage(types, silent) {
  const head = made(
    "Events",
    `\`redrive.on(kind, listener)\` calls the listener for what happens in this process: what its workers run and see, and what the
program enqueues, cancels or ends. It does not hear what other processes do; ask the store about that. The kind \`"*"\` stands
for all. Redrive does not wait for a listener, and logs what it throws; but it calls it in the middle of its work, so keep it
short. \`redrive.on\` returns a function that stops the listener. Every event has its \`kind\`, and:`,
  );
  const kinds = unionOf(types.find("RedriveEvent"), types).flatMap((each) => kindOf(each, silent, "RedriveEvent"));
  const verdicts = unionOf(types.find("Verdict"), types).flatMap((each) => kindOf(each, silent, "Verdict"));
  return `${[head, "## Kinds", ...kinds, "## Verdict", types.find("Verdict").doc, ...verdicts].join("\n\n")}\n`;
}

/** One kind of a union, under its name. */
function kindOf({ doc, members, words }, silent, union) {
  const kind = members.find(({ name }) => name === "kind");
  return (words ?? [JSON.parse(kind.type)]).map((word) => {
    if (doc === "") silent(`${union} ${word}`);
    const fields = members.filter((member) => member !== kind);
    const table = fields.length > 0 ? [tableOf(fields, FIELD, (field) => silent(`${union} ${word}.${field}`))] : [];
    return [`### ${word}`, doc, ...table, ...seen(fields, "events.md")].join("\n\n");
  });
}

/** An interface as its fields and, below, its methods one by one. */
function faceOf(types, silent, name, at) {
  const { doc } = types.find(name);
  const { members } = membersOf(types.find(name), types);
  const fields = members.filter(({ isMethod }) => !isMethod);
  const methods = members.filter(({ isMethod }) => isMethod);
  return [
    `## ${at}`,
    doc,
    ...(fields.length > 0 ? [tableOf(fields, FIELD, (field) => silent(`${name}.${field}`)), ...seen(fields)] : []),
    ...methods.map((method) => callOf(`${at}.${method.name}`, method, () => silent(`${name}.${method.name}`))),
  ].join("\n\n");
}

/** A method: its name, its signature, what it does, and where its types are. */
function callOf(name, method, none) {
  if (method.doc === "") none();
  return [`### ${name}`, block([textOf(name, method)]), method.doc, ...seen([typesOf(method)])].join("\n\n");
}

/** What an entry point of the package exports to be called, with all its forms and a sentence for each. */
function functionOf(types, silent, name) {
  const entries = types.every(name);
  const overloads = entries.filter(({ body }) => body.type === "TSDeclareFunction");
  const forms = (overloads.length > 0 ? overloads : entries).flatMap((entry) => formsOf(types, entry));
  const texts = forms.map((form) => `${forms.length > 1 ? `// ${form.doc}\n` : ""}${textOf(form.name, form)}`);
  const [{ doc }] = entries;
  if ([doc, ...forms.map((form) => form.doc)].includes("")) silent(name);
  const said = overloads.length > 0 ? [] : [doc];
  return [`### ${name}`, ...(texts.length > 0 ? [block(texts)] : []), ...said, ...seen(forms.map(typesOf))].join(
    "\n\n",
  );
}

/** How a function, a class or a constant with call signatures is called. */
function formsOf(types, entry) {
  const { name, body, doc } = entry;
  if (body.type === "FunctionDeclaration" || body.type === "TSDeclareFunction")
    return [{ name, doc, ...signature({ member: body, from: entry }) }];
  if (body.type === "ClassDeclaration") {
    const { value } = body.body.body.find(({ kind }) => kind === "constructor");
    return [{ name: `new ${name}`, doc, ...signature({ member: value, from: entry }), returns: name }];
  }
  const { typeName } = entry.annotation ?? {};
  if (!typeName) return [];
  const from = types.find(typeName.name, entry.file);
  return from.body.body.body.map((member) => ({
    name: member.key ? `${name}.${member.key.name}` : name,
    doc: docBefore(from.source, member.start),
    ...signature({ member, from }),
  }));
}

const block = (lines) => `\`\`\`typescript\n${lines.join("\n")}\n\`\`\``;
const typesOf = ({ parameters, returns }) => ({ type: [...parameters, returns].join(" ") });

/** A call on one line, or with a line for each parameter where that is too long. */
function textOf(name, { generic, parameters, returns }) {
  const short = `${name}${generic}(${parameters.join(", ")}): ${returns}`;
  return short.length <= 100 ? short : `${name}${generic}(\n  ${parameters.join(",\n  ")},\n): ${returns}`;
}

/** What a call answers with; of a union each member for itself. */
function shapeOf(types, silent, name) {
  const entry = types.find(name);
  const table = (members) => tableOf(members, FIELD, (field) => silent(`${name}.${field}`));
  if (entry.body.type !== "TSUnionType") {
    const { members, linked } = membersOf(entry, types, (other) => SHAPES.includes(other));
    const links = linked.map((link) => `Everything of [${link.name}](#${link.name.toLowerCase()}), and:`);
    return [`### ${name}`, entry.doc, ...links, table(members), ...seen(members, "api.md", name)].join("\n\n");
  }
  const parts = unionOf(entry, types).map(({ members: [first, ...members] }) => {
    return `Where ${code(`${first.name}: ${first.type}`)}:\n\n${table(members)}`;
  });
  return [`### ${name}`, entry.doc, ...parts].join("\n\n");
}

/** Names that are explained under another one. */
const ELSEWHERE = new Map(
  Object.entries({
    JobDefinition: "api.md#definejob",
    JobTarget: "options.md#jobfilter",
    JobQuery: "options.md#jobfilter",
    DeadLetterTarget: "options.md#deadletterfilter",
    AnyScheduleView: "api.md#scheduleview",
    EventKind: "events.md#kinds",
    EventOf: "events.md#kinds",
    Verdict: "events.md#verdict",
    ErrorCode: "errors.md",
  }),
);

/** Where a type is explained; null where it is not. */
function placeOf(name) {
  if (isOption(name)) return `options.md#${name.toLowerCase()}`;
  if (isWord(name)) return "options.md#words";
  if (SHAPES.includes(name)) return `api.md#${name.toLowerCase()}`;
  if (CONTEXTS.some(([context]) => context === name)) return `context.md#${name.toLowerCase()}`;
  const face = FACES.find(([interfaceName]) => interfaceName === name);
  return face ? `api.md#${face[1].toLowerCase().replaceAll(".", "")}` : (ELSEWHERE.get(name) ?? null);
}

/** Where the types are explained that these members or calls name: nothing, or one line. */
function seen(members, page = "api.md", self = "") {
  const names = new Set(members.flatMap(({ type }) => type.match(/\b[A-Z]\w+/g) ?? []));
  const links = [...names].flatMap((name) => {
    const place = name === self ? null : placeOf(name);
    return place === null ? [] : [`[${name}](${place.startsWith(`${page}#`) ? place.slice(page.length) : place})`];
  });
  return links.length > 0 ? [`See ${links.join(", ")}.`] : [];
}
