// The documents that the API answers, as schemas.
export * from "./documents/work.ts";
export * from "./documents/recovery.ts";
export * from "./documents/fleet.ts";
export * from "./documents/server.ts";
