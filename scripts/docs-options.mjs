// The page about options, made of the types and doc comments of src: every default, unit and bound is said once, where it
// is declared.

import { code, membersOf, tableOf } from "./declarations.mjs";

/** The sections of the page: a type of the public surface, where its options are given, and a type that adds to it. */
const SECTIONS = [
  ["RedriveOptions", "createRedrive(options)"],
  ["JobOptions", "defineJob(type, options)", "WithSchema"],
  ["BatchJobOptions", "defineJob(type, options)", "WithSchema"],
  ["TypeOptions", "defineJob(type, options)"],
  ["BatchOptions", "defineJob(type, { batch: options })"],
  ["SubprocessOptions", "subprocess(options)"],
  ["PolicyOptions", "createRedrive({ defaults }), defineJob(type, options)"],
  ["ServiceOptions", "createRedrive({ services: { name: options } })"],
  ["TenantOptions", "createRedrive({ tenants: { name: options } })"],
  ["HealthOptions", "createRedrive({ health: options }), redrive.config.ts"],
  [
    "RateOptions",
    "createRedrive({ services: { name: { rateLimit: options } } }), defineJob(type, { rateLimit: options })",
  ],
  ["BudgetOptions", "createRedrive({ services: { name: { budget: options } } })"],
  ["ExponentialOptions", "exponential(options)"],
  ["LinearOptions", "linear(options)"],
  ["MatchRule", "defineJob(type, { classify: [rule] }), retryable(fn, { classify: [rule] })"],
  ["EnqueueOptions", "redrive.enqueue(job, input, options), redrive.run(job, input, options)"],
  ["EnqueueManyOptions", "redrive.enqueueMany(job, inputs, options)"],
  ["ProcessRecordsOptions", "redrive.processRecords(job, records, options)"],
  ["AlertOptions", "redrive.processRecords(job, records, { alerts: options })"],
  ["FleetAlertOptions", "createRedrive({ alerts: options }), redrive.config.ts"],
  ["AlertRuleOptions", "createRedrive({ alerts: { rules: { errorRate: options } } })"],
  ["AlertSinksOptions", "createRedrive({ alerts: { sinks: options } })"],
  ["WebhookSinkOptions", "createRedrive({ alerts: { sinks: { webhook: options } } }), { slack: options }"],
  ["CommandSinkOptions", "createRedrive({ alerts: { sinks: { command: options } } })"],
  ["RedriveWorkerOptions", "redrive.worker(options), redrive.processRecords(job, records, { worker: options })"],
  ["WorkerOptions", "redrive.worker(options)"],
  ["ScheduleOptions", "redrive.schedules.set(name, options)"],
  ["JobFilter", "redrive.jobs.all(filter), .cancel(filter), .reschedule(filter, change)"],
  ["RescheduleOptions", "redrive.jobs.reschedule(target, options)"],
  ["DeadLetterFilter", "redrive.deadLetters.list(filter), .all, .retry, .remove, .stats, .export"],
  ["ExportOptions", "redrive.deadLetters.export(format, filter, options)"],
  ["EditOptions", "redrive.deadLetters.edit(id, payload, options)"],
  ["RepairOptions", "redrive.deadLetters.repair(target, recipe, options)"],
  ["RedriveSelection", "redrive.redrives.plan(selection)"],
  ["RedrivePlanOptions", "redrive.redrives.plan(selection, options)"],
  ["RedriveStartOptions", "redrive.redrives.start(plan, options)"],
  ["RedriveRunQuery", "redrive.redrives.list(query)"],
  ["FollowOptions", "redrive.redrives.follow(id, options)"],
  ["RunQuery", "redrive.runs.list(query)"],
  ["StuckFilter", "redrive.stuck.list(filter), .fix(filter)"],
  ["EventFilter", "redrive.events(filter)"],
  [
    "ActionOptions",
    "redrive.pause(target, options), .resume, redrive.jobs.cancel(target, options), redrive.deadLetters.retry(target, options), .remove, .undo, redrive.alerts.mute(rule, options), .unmute, redrive.causes.mute(fingerprint, options), .unmute, .fix, .reopen, .note, .own, redrive.stuck.fix(options), redrive.breakers.open(service, options), .close, .reset, redrive.schedules.pause(name, options), .resume, .run, .remove, redrive.redrives.pause(id, options), .resume, .cancel, .recall",
  ],
  ["RetryableOptions", "retryable(fn, options), @retryable(options)"],
  [
    "BreakerOptions",
    "createRedrive({ services: { name: { breaker: options } } }), createBreaker(name, options), retryable(fn, { breaker: options })",
  ],
  ["RedriveConfig", "redrive.config.ts"],
  ["WorkerConfig", "redrive.config.ts"],
  ["PostgresOptions", "postgres(options)"],
  ["TestRedriveOptions", "createTestRedrive(options)"],
  ["FaultOptions", "test.failNext(job, error, options), .slowNext(job, duration, options), .crashNext(job, options)"],
  ["PerformOptions", "perform(job, input, options)"],
];

/** Types that are lists of words, and the type or constant that lists them. */
const WORDS = [
  ["PresetName", "PRESETS"],
  ["Jitter", "Jitter"],
  ["UniqueMode", "UNIQUE_MODES"],
  ["FailureClass", "FAILURE_CLASSES"],
  ["Severity", "Severity"],
  ["State", "STATES"],
  ["DeathReason", "DEATH_REASONS"],
  ["LogLevel", "LOG_LEVELS"],
  ["WhenOpen", "WHEN_OPEN"],
  ["Overlap", "OVERLAPS"],
  ["RunStatus", "RUN_STATUSES"],
  ["ReasonKind", "REASON_KINDS"],
  ["ReleaseReason", "RELEASE_REASONS"],
  ["ExportFormat", "EXPORT_FORMATS"],
  ["CauseState", "CAUSE_STATES"],
  ["RunState", "RUN_STATES"],
  ["LetterOutcome", "LETTER_OUTCOMES"],
];

const HEAD = `# Options

<!-- Made by \`node scripts/docs.mjs\` from the doc comments in src. Change those, not this page. -->

Everything is optional unless it is marked. What is out of its range is refused with the range, nothing is clamped; an
unknown name is refused with the nearest known one. Durations are texts such as \`"250ms"\`, \`"5s"\`, \`"1h30m"\`, \`"7d"\`, or
whole milliseconds. What the values mean together: [backoff and presets](../concepts/backoff-and-presets.md),
[failure classes](../concepts/failure-classes.md), [job states](../concepts/job-states.md),
[leases](../concepts/leases-and-guarantees.md).
`;

/** The page as the source says it; `silent` hears of options that say nothing about themselves. */
export function optionsPage(types, silent) {
  const sections = SECTIONS.map(([name, givenTo, adding]) => {
    const added = adding === undefined ? [] : membersOf(types.find(adding), types).members;
    const { members: own, linked } = membersOf(types.find(name), types, (other) => other !== name && isOption(other));
    const members = [...added.map((member) => ({ ...member, isOptional: true })), ...own];
    const head = { names: ["option", "type", "what it means"], marks: true };
    const places = givenTo.split(/, (?=[\w.]+\(|@|\.)/).map(code);
    return [
      `## ${name}`,
      `${types.find(name).doc}\n\n${/\(/.test(givenTo) ? "Given to" : "Written in"} ${places.join(", ")}.`,
      ...linked.map((link) => `${linkText(link)}${members.length === 0 ? "." : ", and:"}`),
      ...(members.length === 0 ? [] : [tableOf(members, head, (option) => silent(`${name}.${option}`))]),
    ].join("\n\n");
  });
  const words = WORDS.map(([name, list]) => `| \`${name}\` | ${types.words(list).map(code).join(" ")} |`);
  const values = `## Words\n\n| type | values |\n| --- | --- |\n${words.join("\n")}`;
  return `${[HEAD.trimEnd(), ...sections, values].join("\n\n")}\n`;
}

/** True for a type that has a section on this page. */
export const isOption = (name) => SECTIONS.some(([section]) => section === name);

/** True for a type whose words are listed on this page. */
export const isWord = (name) => WORDS.some(([word]) => word === name);

/** Where the options of another section are, and which of them. */
function linkText({ name, only, but }) {
  const link = `of [${name}](#${name.toLowerCase()})`;
  if (only) return `${only.map(code).join(", ")} ${link}`;
  return but ? `Everything ${link} but ${but.map(code).join(", ")}` : `Everything ${link}`;
}
