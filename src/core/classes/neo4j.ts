// Neo4j: `Neo.Classification.Category.Title`. The server says itself which errors pass.

import type { Family } from "./clue.ts";

const CODE = /^Neo\.(Transient|Client|Database)Error\.(\w{1,32})\.(\w{1,64})$/;

/** Neo4j. */
export const neo4j: Family = ({ code }) => {
  const [, kind, category, title] = CODE.exec(code) ?? [];
  if (kind === undefined) return undefined;
  if (title === "AuthenticationRateLimit") return "rate_limited";
  if (kind !== "Client") return "transient";
  if (category === "Security") return "authentication";
  // A transaction that the server ended, for a lock or a change of leader, may be begun again.
  return category === "Transaction" || category === "Cluster" ? "transient" : "permanent";
};
