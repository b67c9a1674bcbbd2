// A handler for every route; a route without one does not compile.
import type { Handlers } from "../call.ts";
import { FLEET_HANDLERS } from "./fleet.ts";
import { RECOVERY_HANDLERS } from "./recovery.ts";
import { SERVER_HANDLERS } from "./server.ts";
import { WORK_HANDLERS } from "./work.ts";

/** All handlers by the name of their route. */
export const HANDLERS: Handlers = { ...SERVER_HANDLERS, ...WORK_HANDLERS, ...RECOVERY_HANDLERS, ...FLEET_HANDLERS };
