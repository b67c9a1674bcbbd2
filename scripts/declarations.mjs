// What the types of src say about themselves: declarations by name, their members, and the doc comment of each. The
// reference pages are made of this and of nothing else.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAst } from "vitest/node";

/** Bases that the language declares; they add nothing to a page. */
const BUILT_IN = ["AsyncDisposable"];

/** Every declaration of a type, constant or function below a folder, by name. */
export function readTypes(folder) {
  const all = new Map();
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  for (const file of files.toSorted()) {
    const source = readFileSync(join(folder, file), "utf8");
    for (const node of parseAst(source, { lang: "ts" }, file).body) {
      const isExported = node.type.startsWith("Export");
      const doc = docBefore(source, node.start);
      for (const each of declared(node.declaration ?? node))
        all.set(each.name, [...(all.get(each.name) ?? []), { ...each, source, file, isExported, doc }]);
    }
  }
  const every = (name, near) => {
    const found = all.get(name) ?? [];
    const best = found.find(({ file }) => file === near) ?? found.find(({ isExported }) => isExported);
    if (!best) throw new Error(`scripts/docs.mjs: src declares no ${name}; change the list of sections`);
    return found.filter(({ file }) => file === best.file);
  };
  const find = (name, near) => every(name, near)[0];
  return { find, every, has: (name) => all.has(name), words: (name) => wordsOf(find(name).body) };
}

function declared(node) {
  if (["TSInterfaceDeclaration", "ClassDeclaration", "FunctionDeclaration", "TSDeclareFunction"].includes(node.type))
    return [{ name: node.id.name, body: node }];
  if (node.type === "TSTypeAliasDeclaration") return [{ name: node.id.name, body: node.typeAnnotation }];
  if (node.type !== "VariableDeclaration") return [];
  return node.declarations
    .filter(({ id }) => id.type === "Identifier")
    .map(({ id, init }) => ({ name: id.name, body: init, annotation: id.typeAnnotation?.typeAnnotation }));
}

/** The names that an entry point of the package exports, split into types and values. */
export function exportsOf(path) {
  const names = { types: [], values: [] };
  for (const node of parseAst(readFileSync(path, "utf8"), { lang: "ts" }, path).body) {
    if (node.type !== "ExportNamedDeclaration") continue;
    for (const { exported, exportKind } of node.specifiers ?? [])
      names[node.exportKind === "type" || exportKind === "type" ? "types" : "values"].push(exported.name);
    for (const { name, body } of node.declaration ? declared(node.declaration) : [])
      names[body.type.startsWith("TSInterface") ? "types" : "values"].push(name);
  }
  return names;
}

/** The members of a type; what belongs to a section of its own is only linked. */
export function membersOf(entry, types, isLinked = () => false) {
  const linked = [];
  const follow = (name, which, near) => {
    if (BUILT_IN.includes(name)) return [];
    if (!isLinked(name)) return ofNode(types.find(name, near).body, types.find(name, near));
    linked.push({ name, ...which });
    return [];
  };
  const ofReference = (node, from) => {
    const name = node.typeName?.name ?? node.expression?.name;
    const [first, second] = node.typeArguments?.params ?? [];
    if (name === "Partial") return ofNode(first, from).map((member) => ({ ...member, isOptional: true }));
    if (name === "Readonly") return ofNode(first, from);
    if (name !== "Pick" && name !== "Omit") return follow(name, {}, from.file);
    const keys = wordsOf(second.type === "TSTypeReference" ? types.find(second.typeName.name, from.file).body : second);
    const which = name === "Pick" ? { only: keys } : { but: keys };
    return follow(first.typeName.name, which, from.file).filter((member) =>
      name === "Pick" ? keys.includes(member.name) : !keys.includes(member.name),
    );
  };
  const ofNode = (node, from) => {
    switch (node.type) {
      case "TSInterfaceDeclaration":
        return [
          ...node.extends.flatMap((base) => ofReference(base, from)),
          ...node.body.body.flatMap((member) => read(member, from, types)),
        ];
      case "TSIntersectionType":
        return node.types.flatMap((part) => ofNode(part, from));
      case "TSParenthesizedType":
        return ofNode(node.typeAnnotation, from);
      case "TSTypeLiteral":
        return node.members.flatMap((member) => read(member, from, types));
      case "TSTypeReference":
        return ofReference(node, from);
      default:
        throw new Error(`scripts/docs.mjs: ${from.file}: cannot read the members of a ${node.type}`);
    }
  };
  return { members: ofNode(entry.body, entry), linked };
}

/** The members of a union, each with its doc comment, its own members, and the words that a type argument names it by. */
export function unionOf(entry, types) {
  return entry.body.types.flatMap((node) => {
    const target = node.type === "TSTypeReference" ? types.find(node.typeName.name, entry.file) : null;
    if (target?.body.type === "TSUnionType") return unionOf(target, types);
    const [argument] = node.typeArguments?.params ?? [];
    const words = argument?.type === "TSLiteralType" ? wordsOf(argument) : null;
    const { members } = membersOf({ ...entry, body: node }, types);
    return [{ doc: docBefore(entry.source, node.start), members, words }];
  });
}

function read(member, from, types) {
  // What stands under a symbol is for the library itself, and what must be absent is no option.
  if (member.computed || member.type === "TSCallSignatureDeclaration") return [];
  const { source, body, file } = from;
  const text = (node) => source.slice(node.start, node.end);
  const parameter = (name) => body.typeParameters?.params.find((each) => each.name.name === name)?.constraint;
  const returned = (member.returnType ?? member.typeAnnotation)?.typeAnnotation;
  if (returned?.type === "TSUndefinedKeyword") return [];
  const name = member.key.name;
  const common = { name, isOptional: member.optional === true, doc: docBefore(source, member.start) };
  const aliased = methodBehind(returned, types, file);
  if (member.type === "TSMethodSignature" || aliased) {
    const { parameters, returns, generic } = signature(aliased ?? { member, from });
    const type = `(${parameters.join(", ")}) => ${returns}`;
    return [{ ...common, isMethod: true, type, parameters, returns, generic }];
  }
  // A type parameter says less than what it stands for.
  const type = plain(
    typeText(parameter(text(returned)) ?? returned, source, types, file).replace(/ \| undefined$/, ""),
  );
  return [{ ...common, isMethod: false, type }];
}

/** The method of another type that a field stands for: `Events["on"]`. */
function methodBehind(node, types, file) {
  if (node?.type !== "TSIndexedAccessType" || !types.has(node.objectType.typeName?.name)) return null;
  const from = types.find(node.objectType.typeName.name, file);
  const found = from.body.body?.body?.find(({ key }) => key?.name === node.indexType.literal?.value);
  return found?.type === "TSMethodSignature" ? { member: found, from } : null;
}

/** The signature of a method or function, in parts. */
export function signature({ member, from }) {
  const text = (node) => plain(from.source.slice(node.start, node.end));
  return {
    generic: member.typeParameters ? text(member.typeParameters) : "",
    parameters: member.params.map(text),
    returns: member.returnType ? text(member.returnType.typeAnnotation) : "",
  };
}

/** A type or parameter on one line, without what says nothing to a caller. */
function plain(text) {
  return text
    .replace(/\breadonly /g, "")
    .replace(/\bNoInfer<(\w+)>/g, "$1")
    .replace(/\s+/g, " ")
    .replace(/([(<]) /g, "$1")
    .replace(/,? \)/g, ")")
    .replace(/, >/g, ">")
    .replace(/^Readonly<(.*)>$/, "$1");
}

/** The text of a type; one that is looked up in another (`FleetBreaker["state"]`) as the words it stands for. */
function typeText(node, source, types, file) {
  const words = lookedUp(node, types, file);
  return words ? words.map((word) => JSON.stringify(word)).join(" | ") : source.slice(node.start, node.end);
}

function lookedUp(node, types, file) {
  if (node.type === "TSTypeReference" && node.typeName.name === "Exclude") {
    const [from, without] = node.typeArguments.params;
    const words = lookedUp(from, types, file);
    return words?.filter((word) => !wordsOf(without).includes(word)) ?? null;
  }
  if (node.type !== "TSIndexedAccessType" || !types.has(node.objectType.typeName?.name)) return null;
  const { body } = types.find(node.objectType.typeName.name, file);
  if (body.type !== "TSUnionType") return null;
  const { value: key } = node.indexType.literal;
  const literal = (part) =>
    (part.type === "TSParenthesizedType" ? literal(part.typeAnnotation) : part.types?.flatMap(literal)) ??
    (part.members ?? [])
      .filter((member) => member.key.name === key)
      .flatMap(({ typeAnnotation }) => wordsOf(typeAnnotation.typeAnnotation));
  return body.types.flatMap(literal);
}

/** The texts of a union of literals, of an array of them, or the keys of an object. */
export function wordsOf(node) {
  if (node.type === "TSAsExpression" || node.type === "TSSatisfiesExpression") return wordsOf(node.expression);
  if (node.type === "TSUnionType") return node.types.map(({ literal }) => literal.value);
  if (node.type === "TSLiteralType") return [node.literal.value];
  if (node.type === "ArrayExpression") return node.elements.map(({ value }) => value);
  return node.properties.map(({ key }) => key.name);
}

/** The doc comment that ends right before this place, as one line of text. */
export function docBefore(source, start) {
  const before = source.slice(0, start).replace(/[\s|(]+$/, "");
  const comment = before.slice(Math.max(0, before.lastIndexOf("/*")));
  if (!before.endsWith("*/") || !comment.startsWith("/**")) return "";
  return comment
    .slice(3, -2)
    .replace(/^\s*\* ?/gm, " ")
    .replace(/\s+/g, " ")
    .trim();
}

const cell = (text) => text.replaceAll("|", "\\|");

/** A text as code in a page or a cell of a table. */
export const code = (text) => `\`${cell(text)}\``;

/** Members as a table; `none` hears of those that say nothing about themselves. */
export function tableOf(members, head, none) {
  const rows = members.map(({ name, isOptional, type, doc }) => {
    if (doc === "") none(name);
    const mark = head.marks ? (isOptional ? "" : " (required)") : "";
    return `| ${code(isOptional && !head.marks ? `${name}?` : name)}${mark} | ${code(type)} | ${cell(doc)} |`;
  });
  return `| ${head.names.join(" | ")} |\n| --- | --- | --- |\n${rows.join("\n")}`;
}
