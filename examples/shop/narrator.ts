// Puts what workers report into the words of the news: what failed, and what Redrive does about it and why.
import { counted, span } from "../kit/words.ts";
import type { CrewReport } from "./crew.ts";
import type { News } from "./news.ts";
import type { Answered } from "./service.ts";

/** Tells the news about a run; of what ended well only that it had needed several tries. */
export function narrate(news: News, report: CrewReport): void {
  // Runs of a worker that is gone are told together, by the process that saw it die.
  if (report.crashed || !report.failure) return;
  if (report.outcome === "retried") retried(news, report, report.failure);
  if (report.outcome === "dead") died(news, report, report.failure);
}

/** Tells that the service recognised a call it had carried out already. */
export function narrateRepeat(news: News, { kind }: Answered): void {
  if (kind !== "repeat") return;
  news.gather("repeat", "good", 1, ({ length }) => {
    const came = length === 1 ? "1 call came" : `${length} calls came`;
    return `${came} again: known by the key, carried out only once`;
  });
}

type Failed = NonNullable<CrewReport["failure"]>;

function retried(news: News, report: CrewReport, { class: found, code }: Failed): void {
  const { service, type, order, attempts, maxAttempts, delayMs } = report;
  if (found === "rate_limited")
    return news.gather(`limited ${service}`, "wait", report, ({ length }) => {
      return `${service} says 429, Retry-After 1: after ${counted(length, "call")} all its jobs wait`;
    });
  if (found === "timeout") {
    const next = `try ${attempts + 1} of ${maxAttempts} in ${span(delayMs)}`;
    return news.tell("wait", `${type} of order ${order} hung: stopped after 1 s, ${next}`);
  }
  if (code === "503")
    return news.gather("down", "wait", report, (all) => {
      return `503 from ${service}: ${jobs(all.length, "try", "tries")} again after ${spread(all)}`;
    });
  if (found === "network")
    return news.gather("network", "wait", report, (all) => {
      return `${counted(all.length, "connection")} broke off: again after ${spread(all)}`;
    });
  news.gather("transient", "wait", report, (all) => {
    const names = [...new Set(all.map((one) => one.service))].join(", ");
    return `500 from ${names}: ${jobs(all.length, "try", "tries")} again after ${spread(all)}`;
  });
}

function died(news: News, report: CrewReport, { class: found, message }: Failed): void {
  const { type, order, service, maxAttempts } = report;
  if (found === "validation") {
    const wrong = /: ([^:]+: [^;.]+)\.$/.exec(message)?.[1] ?? "it does not fit";
    return news.gather(`validation ${wrong}`, "bad", report, (all) => {
      return `${counted(all.length, "broken payload")} (${wrong}): no retry helps, dead`;
    });
  }
  if (found === "authentication")
    return news.gather("authentication", "bad", report, (all) => {
      return `403 from ${service}, account closed: no retry helps, ${counted(all.length, "job")} dead`;
    });
  if (found === "timeout")
    return news.tell("bad", `${type} of order ${order} hung ${maxAttempts} times: set aside as a dead letter`);
  news.gather(`exhausted ${type}`, "bad", report, (all) => {
    return `${all.length} × ${type} used up ${maxAttempts} tries: dead, kept to be redriven`;
  });
}

/** So many jobs do something. */
function jobs(count: number, many: string, one = `${many}s`): string {
  return `${counted(count, "job")} ${count === 1 ? one : many}`;
}

/** How long they wait. */
function spread(reports: readonly CrewReport[]): string {
  const delays = reports.map(({ delayMs }) => delayMs);
  const [least, most] = [Math.min(...delays), Math.max(...delays)];
  return least === most ? `${most} ms` : `${least}–${most} ms`;
}
