// The dashboard: a client of the HTTP API and of nothing else. Chooses the page of the address.
import type { ComponentChildren } from "preact";
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { address } from "./address.ts";
import { Empty, Head, Waiting } from "./elements.tsx";
import { startKeys } from "./keys.ts";
import { startLive } from "./live.ts";
import { Cause } from "./pages/cause.tsx";
import { Causes } from "./pages/causes.tsx";
import { Events } from "./pages/events.tsx";
import { Job } from "./pages/job.tsx";
import { Jobs } from "./pages/jobs.tsx";
import { Letters } from "./pages/letters.tsx";
import { Overview } from "./pages/overview.tsx";
import { Plan } from "./pages/plan.tsx";
import { Redrive } from "./pages/redrive.tsx";
import { Redrives } from "./pages/redrives.tsx";
import { Repair } from "./pages/repair.tsx";
import { SignIn } from "./pages/sign-in.tsx";
import { begin, session } from "./server.ts";
import { Shell } from "./shell.tsx";

type Page = (id: string) => ComponentChildren;
type Pages = typeof import("./pages/more.ts");

let pages: Pages | null = null;
const loaded = async (): Promise<Pages> => (pages ??= await import("./pages/more.ts"));

/** A page of the second chunk. */
function Later({ page, fingerprint = "" }: { page: keyof Pages; fingerprint?: string }) {
  const [found, setFound] = useState(pages);
  const [error, setError] = useState<string | null>(null);
  const again = (): void => {
    loaded().then(setFound, () => setError("A part of this page could not be fetched."));
  };
  useEffect(again, []);
  if (!found) return <Waiting error={error} again={again} />;
  const Found = found[page];
  return <Found fingerprint={fingerprint} />;
}

const LISTS: Readonly<Record<string, Page>> = {
  "": () => <Overview />,
  jobs: () => <Jobs />,
  "dead-letters": () => <Letters />,
  causes: () => <Causes />,
  redrives: () => <Redrives />,
  services: () => <Later key="Services" page="Services" />,
  queues: () => <Later key="Queues" page="Queues" />,
  schedules: () => <Later key="Schedules" page="Schedules" />,
  workers: () => <Later key="Workers" page="Workers" />,
  events: () => <Events />,
  policies: () => <Later key="Policies" page="Policies" />,
  search: () => <Later key="Search" page="Search" />,
};

const SINGLES: Readonly<Record<string, Page>> = {
  jobs: (id) => <Job key={id} id={id} />,
  causes: (id) => <Cause key={id} fingerprint={id} />,
  plans: (id) => <Plan key={id} id={id} />,
  redrives: (id) => <Redrive key={id} id={id} />,
  repair: (id) => <Repair key={id} id={id} />,
  recipe: (id) => <Later key={id} page="Recipe" fingerprint={id} />,
};

function Chosen() {
  const [page = "", id] = address.value.path;
  const chosen = id === undefined ? LISTS[page] : SINGLES[page];
  if (chosen) return <>{chosen(id ?? "")}</>;
  return (
    <>
      <Head title="No such page" />
      <Empty says="This address leads nowhere. It may have been cut off when it was sent." />
    </>
  );
}

function App({ problem }: { problem: string | null }) {
  if (!session.value?.role || session.value.role === "producer") return <SignIn problem={problem} />;
  return (
    <Shell>
      <Chosen />
    </Shell>
  );
}

void begin().then((problem) => {
  startKeys();
  startLive();
  render(<App problem={problem} />, document.getElementById("app") as HTMLElement);
  // Once the first page stands, so that the others open at once.
  setTimeout(() => void loaded().catch(() => undefined), 1_500);
});
