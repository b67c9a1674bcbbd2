// `redrive/http`: the library over HTTP, for your own server.
export { openAccess, newSignInCode, type AccessOptions } from "./access.ts";
export { httpHandler, type HttpHandler, type HttpOptions } from "./handler.ts";
export type { Access, Auth, Identity, Peer } from "./identity.ts";
export { fastifyRedrive, koaRedrive, toNode, type NodeListener, type NodeRequest } from "./node.ts";
export type { Role } from "./route.ts";
export { openApi } from "./openapi.ts";
export { openTokens, type NewToken, type Tokens, type TokenView } from "./tokens.ts";
