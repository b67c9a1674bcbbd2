// All routes of the API, in the order of the reference.
import type { Route } from "./route.ts";
import { FLEET_ROUTES } from "./routes/fleet.ts";
import { RECOVERY_ROUTES } from "./routes/recovery.ts";
import { SERVER_ROUTES } from "./routes/server.ts";
import { WORK_ROUTES } from "./routes/work.ts";

/** Every route. */
export const ROUTES = [
  ...SERVER_ROUTES,
  ...WORK_ROUTES,
  ...RECOVERY_ROUTES,
  ...FLEET_ROUTES,
] as const satisfies readonly Route[];

/** The type of every route. */
export type AnyRoute = (typeof ROUTES)[number];
/** The name of a route. */
export type RouteName = AnyRoute["name"];
/** The type of one route. */
export type RouteOf<N extends RouteName> = Extract<AnyRoute, { readonly name: N }>;

/** The prefix of every path. */
export const PREFIX = "/api/v1";
