// `redrive/http`: the library over HTTP, for your own server.
export { httpHandler, type HttpHandler, type HttpOptions } from "./handler.ts";
export type { Access, Auth, Identity, Peer } from "./identity.ts";
export type { Role } from "./route.ts";
export { openApi } from "./openapi.ts";
