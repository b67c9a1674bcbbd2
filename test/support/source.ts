// Reads one source file into the few facts the tidy test judges: which names it uses, how long its
// functions are, what it exports. It knows the language (through the parser vitest brings) and none of the rules.

import { parseAst } from "vitest/node";

/** A name and the line it stands on. */
export interface Mention {
  readonly name: string;
  readonly line: number;
}

/** What the tidy test knows about one file. */
export interface Source {
  readonly path: string;
  readonly text: string;
  /** Names and dotted names: `console`, `Date.now`, `new Worker`, `new Date()`, `node:crypto.randomUUID`. */
  readonly uses: Mention[];
  readonly functions: (Mention & { readonly lines: number })[];
  readonly exports: (Mention & { readonly documented: boolean })[];
}

interface Syntax {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

const isSyntax = (value: unknown): value is Syntax =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
const list = (value: unknown): Syntax[] => (Array.isArray(value) ? value.filter(isSyntax) : []);

function text(node: unknown, field: string): string {
  const value = isSyntax(node) ? node[field] : "";
  return typeof value === "string" ? value : "";
}

/** Parses a file; throws with its path where it is not valid TypeScript. */
export function readSource(path: string, code: string): Source {
  const source: Source = { path, text: code, uses: [], functions: [], exports: [] };
  const modules = new Map<string, string>();
  const lineOf = lineCounter(code);
  const use = (name: string, at: Syntax): unknown => source.uses.push({ name, line: lineOf(at.start) });

  // `a.b["c"]` as "a.b.c"; a default or namespace import stands for its module, `globalThis.` for nothing.
  function dotted(node: unknown): string {
    if (!isSyntax(node)) return "";
    if (node.type === "Identifier") return modules.get(text(node, "name")) ?? text(node, "name");
    if (node.type === "ChainExpression") return dotted(node.expression);
    if (node.type !== "MemberExpression") return "";
    const property = text(node.property, node.computed === true ? "value" : "name");
    const object = dotted(node.object);
    return /^(global|globalThis)$/.test(object) ? property : `${object}.${property}`;
  }

  function readImport(node: Syntax): void {
    const module = text(node.source, "value");
    for (const specifier of node.importKind === "type" ? [] : list(node.specifiers)) {
      if (specifier.type === "ImportSpecifier" && specifier.importKind !== "type") {
        use(`${module}.${text(specifier.imported, "name")}`, specifier);
      } else if (specifier.type === "ImportDefaultSpecifier" || specifier.type === "ImportNamespaceSpecifier") {
        modules.set(text(specifier.local, "name"), module);
        use(`${module}.*`, specifier);
      }
    }
  }

  function readFunction(node: Syntax, parent: Syntax): void {
    const name = text(node.id ?? parent.id ?? parent.key, "name") || "(anonymous)";
    const line = lineOf(node.start);
    source.functions.push({ name, line, lines: lineOf(node.end) - line + 1 });
  }

  function walk(node: Syntax, parent: Syntax): void {
    if (node.type === "ImportDeclaration") return readImport(node);
    if (isSyntax(node.source) && node.source.type === "Literal") readImport(node);
    if (/Function(Declaration|Expression)$/.test(node.type)) readFunction(node, parent);
    if (node.type === "Identifier" || node.type === "MemberExpression") use(dotted(node), node);
    if (node.type === "NewExpression") {
      use(`new ${dotted(node.callee)}`, node);
      if (list(node.arguments).length === 0) use(`new ${dotted(node.callee)}()`, node);
    }
    if (node.type === "VariableDeclarator" && text(node.id, "type") === "ObjectPattern" && isSyntax(node.id)) {
      for (const property of list(node.id.properties)) {
        use(`${dotted(node.init)}.${text(property.key, "name")}`, property);
      }
    }
    for (const [field, value] of Object.entries(node)) {
      // A plain property name is not a use of the global of that name.
      if ((field === "key" || field === "property") && node.computed !== true) continue;
      for (const child of isSyntax(value) ? [value] : list(value)) walk(child, node);
    }
  }

  const program: unknown = parse(path, code);
  if (isSyntax(program)) {
    for (const node of list(program.body)) {
      walk(node, program);
      source.exports.push(...exported(node, code).map((entry) => ({ ...entry, line: lineOf(node.start) })));
    }
  }
  return source;
}

function lineCounter(code: string): (offset: number) => number {
  const lines = [1];
  for (let i = 0; i < code.length; i++) lines.push((lines[i] ?? 1) + (code[i] === "\n" ? 1 : 0));
  return (offset) => lines[offset] ?? 1;
}

function parse(path: string, code: string): unknown {
  try {
    return parseAst(code, { lang: "ts" }, path);
  } catch (error) {
    throw new Error(`${path} does not parse: ${String(error)}`, { cause: error });
  }
}

// Declarations only: what is passed on with `export { a } from` is documented where it is declared.
function exported(node: Syntax, code: string): { name: string; documented: boolean }[] {
  const declaration = node.declaration;
  if (!node.type.startsWith("Export") || !isSyntax(declaration)) return [];
  const before = code.slice(0, node.start).trimEnd();
  const documented = before.endsWith("*/") && before.slice(before.lastIndexOf("/*")).startsWith("/**");
  const declared = declaration.id ?? list(declaration.declarations)[0]?.id;
  return [{ name: text(declared, "name") || "default", documented }];
}
