// The public surface of Redrive: re-exports only.
export { isRedriveError, PermanentError, RedriveError, RetryAfterError, type ErrorCode } from "./core/errors.ts";
export {
  type Backoff,
  type CustomDelay,
  exponential,
  type ExponentialOptions,
  fixed,
  immediate,
  linear,
  type LinearOptions,
} from "./core/backoff.ts";
export type { BreakerOptions } from "./core/breaker.ts";
export type { BudgetOptions } from "./core/budget.ts";
export type { ClassifyContext, ClassifyFunction, ClassifyRule, MatchRule } from "./core/classify-rules.ts";
export type { Duration } from "./core/duration.ts";
export type { Explanation, Reason, ReasonKind } from "./core/explain.ts";
export type { Health, HealthOptions, HealthReason } from "./core/health.ts";
export type { ShownState } from "./core/holding.ts";
export { done, type ItemOutcome, permanent, transient } from "./core/item-outcome.ts";
export type { Failure, FailureClass, Severity } from "./core/job.ts";
export type { RunRecord, RunStatus } from "./core/run-record.ts";
export type { RateOptions } from "./core/rate.ts";
export type { CatchUp, Overlap } from "./core/schedule.ts";
export type { CauseState, ReleaseFailures } from "./core/recovery/cause-state.ts";
export type { ServiceOptions, TenantOptions, WhenOpen } from "./core/service.ts";
export { PRESETS, type PresetName } from "./core/policy.ts";
export type { AttemptContext } from "./retryable/attempt.ts";
export type { BreakerCounts, CircuitBreaker } from "./services/call-breaker.ts";
export { createBreaker } from "./services/process-breaker.ts";
export type { RetryableOptions, RetryNotice } from "./retryable/settings.ts";
export { retryable, type Retryable, type RetryableDecorator, type Retried } from "./retryable/retryable.ts";
export type {
  AttemptRecord,
  DeadLetter,
  DeathReason,
  Job,
  Lease,
  State,
} from "./core/job.ts";
export type { UniqueMode } from "./core/new-job.ts";
export type { PolicyOptions } from "./core/policy.ts";
export {
  type BatchContext,
  type BatchItem,
  type BatchOptions,
  type BatchReturned,
  type RunBatch,
} from "./jobs/batch-handler.ts";
export type { Breakers, BreakerView } from "./operate/breakers.ts";
export type { CauseDetails, Causes, CauseView } from "./operate/causes.ts";
export type { CountedName, LettersSeen } from "./operate/cause-letters.ts";
export type { DeadLetterDetails, DeadLetterFilter, DeadLetters, DeadLetterTarget } from "./operate/dead-letters.ts";
export {
  type BatchJobOptions,
  defineJob,
  isJobDefinition,
  type JobContext,
  type JobDefinition,
  type JobOptions,
  type Snooze,
  snooze,
  type TypeOptions,
} from "./jobs/define-job.ts";
export type { ActionOptions } from "./report/event-log.ts";
export type { EventKind, EventOf, RedriveEvent } from "./report/events.ts";
export type { ExportFormat, ExportOptions } from "./operate/export.ts";
export type { JobDetails, JobFilter, Jobs, JobTarget, RescheduleOptions } from "./operate/jobs.ts";
export type { Exemplar, Labels, Metric, MetricHistogram, MetricSample } from "./metrics/metric.ts";
export type { MetricsFormat } from "./metrics/text.ts";
export type { Metrics } from "./operate/monitoring.ts";
export type { LimitView } from "./operate/limit-views.ts";
export type { Middleware } from "./jobs/middleware.ts";
export type { EnqueueOptions } from "./enqueue/new-jobs.ts";
export type { EventFilter } from "./operate/event-log.ts";
export type { CanaryProof, PlanFacts, PlanWarning, RedrivePlan } from "./core/recovery/plan.ts";
export type { RedriveRun, RunState } from "./core/recovery/run.ts";
export type { FrozenSelection, Selection } from "./core/recovery/selection.ts";
export type { RedriveRunQuery } from "./operate/redrive-changes.ts";
export type { RedrivePlanOptions, RedriveSelection, RedriveStartOptions } from "./operate/redrive-selection.ts";
export type { RedriveRunCounts, RedriveRunView } from "./operate/redrive-views.ts";
export type { FollowOptions, Redrives } from "./operate/redrives.ts";
export type { Recipe, RecipeFunction } from "./operate/recipe.ts";
export type { EditAnswer, EditOptions } from "./operate/edit.ts";
export type { Repair, RepairOptions, RepairSummary } from "./operate/repair.ts";
export type { Misfit, Misfits, RepairPreview } from "./operate/repair-letters.ts";
export type { RunQuery, Runs } from "./operate/runs.ts";
export type { Stuck, StuckFilter, StuckRun } from "./operate/stuck.ts";
export type { RunOutcome } from "./enqueue/await-job.ts";
export type { EnqueueManyOptions, EnqueueSummary } from "./enqueue/enqueue-stream.ts";
export type { EnqueuedJob } from "./enqueue/enqueue-result.ts";
export type { JobToEnqueue } from "./enqueue/enqueue-each.ts";
export type { QueueView } from "./operate/queue-views.ts";
export type { ScheduleOptions } from "./schedules/schedule-options.ts";
export type { AnyScheduleView, ScheduleView, UpkeepView } from "./schedules/schedule-views.ts";
export type { Schedules } from "./schedules/schedules.ts";
export type { StandardSchema } from "./jobs/schema.ts";
export type { Alert, AlertOptions } from "./core/alerts.ts";
export type { Alerts, AlertSinkView, AlertTest, AlertView } from "./alerts/alerts.ts";
export type {
  AlertSinksOptions,
  CommandSinkOptions,
  FleetAlertOptions,
  WebhookSinkOptions,
} from "./alerts/sink-options.ts";
export type { AlertMute, AlertState } from "./core/alerting/book.ts";
export type { AlertMessage } from "./core/alerting/message.ts";
export type { AlertRule, AlertRuleOptions } from "./core/alerting/rules.ts";
export type { RecordsSummary, ProcessRecordsOptions, RecordResult } from "./records/process-records.ts";
export type { RedriveConfig, WorkerConfig } from "./config/redrive-config.ts";
export { createRedrive } from "./redrive.ts";
export type { Operator, Redrive } from "./redrive-api.ts";
export type { RedriveOptions } from "./redrive-options.ts";
export type { RedriveWorker, RedriveWorkerOptions } from "./worker/redrive-worker-api.ts";
export type { CauseCount, LoggedEvent, Page, Pause, PauseTarget, PayloadVersion, Store, Tally } from "./store/store.ts";
export type { Log, LogLevel } from "./system/log.ts";
export type { WorkerCounts } from "./report/reporter.ts";
export type { WorkerOptions } from "./worker/settings.ts";
export { subprocess, type SubprocessOptions } from "./jobs/subprocess.ts";
