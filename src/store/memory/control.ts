// What holds work back, in memory: pauses and the state of services, under one version that every claim names.
import type { Verbs } from "../verbs.ts";
import { isSameTarget, type Tables } from "./tables.ts";

/** The verbs about pauses and services. */
export function controlVerbs(tables: Tables): Pick<Verbs, "control" | "pause" | "resume" | "setService"> {
  const inForce = (now: number) => (pause: { from: number; until: number | null }) =>
    pause.until === null || pause.until > now;
  return {
    control() {
      const services = [...tables.services.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
      const pauses = tables.pauses.map((pause) => ({ ...pause }));
      return { version: tables.controlVersion, now: tables.clock(), pauses, services };
    },
    pause({ kind, name }, { forMs, reason }) {
      const now = tables.clock();
      for (const pause of tables.pauses.filter(inForce(now)))
        if (isSameTarget(pause, { kind, name })) pause.until = now;
      tables.pauses.push({ kind, name, from: now, until: forMs === null ? null : now + forMs, reason });
      tables.controlVersion += 1;
    },
    resume(target) {
      const now = tables.clock();
      const ended = tables.pauses.filter(inForce(now)).filter((pause) => isSameTarget(pause, target));
      for (const pause of ended) pause.until = now;
      if (ended.length > 0) tables.controlVersion += 1;
      return ended.length > 0;
    },
    setService(name, version, value) {
      if ((tables.services.get(name)?.version ?? 0) !== version) return false;
      tables.services.set(name, { name, version: version + 1, value });
      tables.controlVersion += 1;
      return true;
    },
  };
}
