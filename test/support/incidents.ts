// All labelled incidents, their halves, and what triage says of them. Rules may be written after the `read` half only; the
// `unread` half says how they do on incidents that they were not written for, so keep its answers unread.
import { triageCauses } from "../../src/operate/triage.ts";
import { OUTAGE_INCIDENTS } from "../fixtures/incidents-outages.ts";
import { PAYLOAD_INCIDENTS } from "../fixtures/incidents-payloads.ts";
import { RELEASE_INCIDENTS } from "../fixtures/incidents-releases.ts";
import { RUN_INCIDENTS } from "../fixtures/incidents-runs.ts";
import { SENT_BACK_INCIDENTS } from "../fixtures/incidents-sent-back.ts";
import { SERVICE_INCIDENTS } from "../fixtures/incidents-services.ts";
import { type Incident, type Label, playIncident } from "./incident-scene.ts";

/** An incident with its half. */
export interface HalvedIncident {
  readonly incident: Incident;
  readonly half: "read" | "unread";
}

/** Every incident; the halves alternate, so that both have their share of each kind. */
export const INCIDENTS: readonly HalvedIncident[] = [
  ...SERVICE_INCIDENTS,
  ...OUTAGE_INCIDENTS,
  ...RELEASE_INCIDENTS,
  ...PAYLOAD_INCIDENTS,
  ...SENT_BACK_INCIDENTS,
  ...RUN_INCIDENTS,
].map((incident, n) => ({ incident, half: n % 2 === 0 ? "read" : "unread" }));

/** What triage said of an incident, and whether that is right. */
export interface TriagedIncident extends HalvedIncident {
  readonly advice: Label;
  readonly reason: string;
  readonly isRight: boolean;
  /** It advised to send all letters where they would fail again. */
  readonly isHarmful: boolean;
}

/** Plays an incident and asks triage about its cause. */
export async function triageIncident(one: HalvedIncident): Promise<TriagedIncident> {
  const { label, bugStillThere } = one.incident;
  const { advice, reason } = await playIncident(one.incident, async (redrive, { fingerprint }) => {
    const [found] = await triageCauses(redrive, { fingerprint });
    if (!found) throw new Error(`Triage says nothing of ${fingerprint}.`);
    return found;
  });
  return { ...one, advice, reason, isRight: label.includes(advice), isHarmful: bugStillThere && advice === "redrive" };
}
