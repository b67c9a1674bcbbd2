// The recipes for a worker as a service: each is what its system can read, as far as that can be told here, and a worker
// that runs the command of each answers the probes and the scrape of the recipe, and stops as the recipe expects.
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, vi } from "vitest";
import { parse } from "yaml";
import { type Bench, createBench } from "./support/cli.ts";
import { startCli, until } from "./support/cli-processes.ts";

const RECIPES = fileURLToPath(new URL("../docs/recipes/", import.meta.url));
const read = (name: string): string => readFileSync(join(RECIPES, name), "utf8");
const has = (command: string): boolean => spawnSync(command, ["--version"]).status === 0;

function project(): Bench {
  const bench = createBench();
  bench.write(
    "jobs.mjs",
    `import { defineJob } from "redrive";\nexport const mail = defineJob("mail", { run: () => null });\n`,
  );
  bench.write("redrive.config.yaml", "store: sqlite:./jobs.db\n");
  bench.write("metrics-token", "a-secret-of-the-test\n");
  return bench;
}

/** Runs the words of a recipe as a worker, on a port that the system chooses; asks it, and stops it. */
async function serves(words: readonly string[], ask: (url: string, bench: Bench) => Promise<void>): Promise<void> {
  const bench = project();
  const here = words.map((word, at) => (words[at - 1] === "--health-port" ? "0" : word.replace("/run/redrive/", "")));
  const running = startCli(bench, here);
  const port = (): string | undefined => /health=(\d+)/.exec(running.text.err)?.[1];
  await until(
    () => port() !== undefined || running.child.exitCode !== null,
    () => running.text.err,
  );
  await ask(`http://127.0.0.1:${port() ?? ""}`, bench);
  running.child.kill("SIGTERM");
  if (running.child.exitCode === null) await once(running.child, "exit");
  expect(running.child.exitCode).toBe(143);
}

const isReady = async (url: string): Promise<void> => {
  expect((await fetch(`${url}/live`)).status).toBe(200);
  await vi.waitFor(async () => expect((await fetch(`${url}/ready`)).status).toBe(200), 30_000);
};

describe("recipes for a worker", () => {
  it("a systemd unit: verified where systemd is; its command answers its probes and stops", {
    timeout: 120_000,
  }, async () => {
    const name = "redrive-worker.service";
    if (has("systemd-analyze")) {
      const { status, stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", join(RECIPES, name)], {
        encoding: "utf8",
      });
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    }
    for (const line of [
      "Restart=always",
      "RestartPreventExitStatus=2 78",
      "SuccessExitStatus=143 75",
      "TimeoutStopSec=40s",
    ])
      expect(read(name)).toContain(`\n${line}\n`);
    const [, call = ""] = /^ExecStart=\/usr\/bin\/env npx redrive (.+)$/m.exec(read(name)) ?? [];
    await serves(call.split(" "), isReady);
  });

  it("a Dockerfile: the worker is process 1, and its health check tells a worker from none", {
    timeout: 120_000,
  }, async () => {
    const text = read("Dockerfile").replaceAll("\\\n", " ");
    const list = (name: string): string[] =>
      JSON.parse(new RegExp(`^${name} (\\[.*\\])$`, "m").exec(text)?.[1] ?? "[]");
    expect(list("ENTRYPOINT")).toEqual(["node", "node_modules/redrive/bin/redrive.js"]);
    expect(text).toMatch(/^USER node$/m);
    const check = JSON.parse(/^HEALTHCHECK .*CMD (\[.*\])$/m.exec(text)?.[1] ?? "[]") as string[];
    await serves(list("CMD"), async (url) => {
      await isReady(url);
      const asked = (to: string) =>
        spawnSync(process.execPath, ["-e", (check[2] ?? "").replace("http://127.0.0.1:8080", to)]);
      expect([asked(url).status, asked("http://127.0.0.1:1").status]).toEqual([0, 1]);
    });
  });

  it("a Deployment: its probes and its scrape are answered, the scrape only with the secret", {
    timeout: 120_000,
  }, async () => {
    const { kind, spec } = parse(read("deployment.yaml"));
    const { metadata, spec: pod } = spec.template;
    expect([kind, spec.selector.matchLabels, pod.terminationGracePeriodSeconds]).toEqual([
      "Deployment",
      metadata.labels,
      40,
    ]);
    const [{ args, livenessProbe, readinessProbe, volumeMounts, ports }] = pod.containers;
    expect([livenessProbe.httpGet, readinessProbe.httpGet]).toEqual(
      ["/live", "/ready"].map((path) => ({ path, port: ports[0].name })),
    );
    expect([volumeMounts[0].name, String(ports[0].containerPort)]).toEqual([
      pod.volumes[0].name,
      metadata.annotations["prometheus.io/port"],
    ]);
    await serves(args, async (url) => {
      await isReady(url);
      const scrape = (headers: Record<string, string>) =>
        fetch(`${url}${metadata.annotations["prometheus.io/path"]}`, { headers });
      expect((await scrape({})).status).toBeGreaterThanOrEqual(400);
      const answer = await scrape({ authorization: "Bearer a-secret-of-the-test" });
      expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining("redrive_slots")]);
    });
  });
});
