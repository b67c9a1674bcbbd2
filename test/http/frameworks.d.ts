// What the tests use of frameworks whose types are packages of their own.
declare module "express" {
  interface App {
    use(...handlers: unknown[]): void;
  }
  const express: { (): App; json(): unknown };
  export default express;
}

declare module "koa" {
  import type { RequestListener } from "node:http";
  export default class Koa {
    use(middleware: unknown): void;
    callback(): RequestListener;
  }
}
