// The worker processes of the demo: starting them, hearing them, killing one of them for real. Whatever happens, no
// process is left behind: they stop when the demo is gone.
import { fileURLToPath } from "node:url";
import type { FailureClass } from "redrive";
import { type ExampleChild, type ExampleChildEnd, startChild } from "../kit/child.ts";

/** What a worker process is told. */
export interface WorkerTask {
  readonly store: string;
  readonly concurrency: number;
}

/** What a worker says about one run. */
export interface CrewReport {
  readonly outcome: "completed" | "retried" | "dead" | "released" | "cancelled" | "stale";
  readonly id: string;
  readonly type: string;
  readonly service: string;
  readonly order: number;
  /** Attempts charged by now. */
  readonly attempts: number;
  readonly maxAttempts: number;
  /** The worker that had it is gone. */
  readonly crashed: boolean;
  /** The run had begun, or may have. */
  readonly started: boolean;
  readonly delayMs: number;
  readonly failure: {
    readonly class: FailureClass;
    readonly code: string | null;
    readonly message: string;
    readonly fingerprint: string;
  } | null;
}

/** What a worker process sends. */
export type CrewMessage = { readonly kind: "ready" } | { readonly kind: "run"; readonly report: CrewReport };

/** A worker process as people see it. */
export interface CrewMember {
  readonly pid: number;
  state: "starting" | "working" | "killed" | "stopped" | "failed";
  completed: number;
  retried: number;
  dead: number;
  /** Jobs it took over from one that is gone. */
  tookOver: number;
}

/** What the crew needs. */
export interface CrewOptions {
  readonly task: WorkerTask;
  readonly service: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly onReport: (report: CrewReport, by: CrewMember) => void;
  /** A process ended without having been asked to. */
  readonly onFailure: (member: CrewMember, end: ExampleChildEnd) => void;
}

const MEMORY_MB = 256;

/** The worker processes. */
export class Crew {
  readonly members: CrewMember[] = [];
  readonly #options: CrewOptions;
  readonly #children = new Map<number, ExampleChild>();

  constructor(options: CrewOptions) {
    this.#options = options;
  }

  /** Replaces all workers by one of another release. */
  async replace(release: string): Promise<void> {
    await this.stop();
    await this.hire({ REDRIVE_DEMO_RELEASE: release });
  }

  /** Starts a worker process; resolves when it takes work, or has failed to. */
  hire(more: Readonly<Record<string, string>> = {}): Promise<CrewMember> {
    const { task, service, env, onReport, onFailure } = this.#options;
    return new Promise((resolve) => {
      const child = startChild(fileURLToPath(new URL("./worker.js", import.meta.url)), {
        args: [JSON.stringify(task)],
        memoryMb: MEMORY_MB,
        env: { ...env, REDRIVE_DEMO_SERVICE: service, ...more },
        onMessage: (message) => {
          const heard = message as CrewMessage;
          if (heard.kind === "run") return onReport(heard.report, member);
          member.state = "working";
          resolve(member);
        },
      });
      const member: CrewMember = {
        pid: child.pid,
        state: "starting",
        completed: 0,
        retried: 0,
        dead: 0,
        tookOver: 0,
      };
      this.members.push(member);
      this.#children.set(child.pid, child);
      void child.ended.then((end) => {
        this.#children.delete(child.pid);
        if (member.state === "starting" || member.state === "working") {
          member.state = "failed";
          onFailure(member, end);
        }
        resolve(member);
      });
    });
  }

  /** `kill -9`, and nothing else. */
  kill(member: CrewMember): void {
    member.state = "killed";
    this.#children.get(member.pid)?.kill();
  }

  /** Asks all to stop and waits until they have. */
  async stop(): Promise<void> {
    const children = [...this.#children.values()];
    for (const member of this.members) if (member.state !== "killed") member.state = "stopped";
    for (const child of children) child.stop();
    await Promise.all(children.map(({ ended }) => ended));
  }

  /** Ends all at once and waits until they have. */
  async end(): Promise<void> {
    const children = [...this.#children.values()];
    for (const member of this.members) if (member.state !== "killed") member.state = "stopped";
    for (const child of children) child.kill();
    await Promise.all(children.map(({ ended }) => ended));
  }
}
