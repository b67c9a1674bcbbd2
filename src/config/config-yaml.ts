// Reads YAML as plain data: no tags, no duplicate keys, few aliases; and finds the line of every field, for messages.
import { LineCounter, parseDocument } from "yaml";

/** The position of a field in its file, as ` line 3`, or empty where it is not known. */
export type YamlPlace = (path: readonly string[]) => string;

/** Reads YAML; throws with the line where it is invalid. */
export function readYaml(text: string): { value: unknown; placeOf: YamlPlace } {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, schema: "core", strict: true, uniqueKeys: true });
  const trouble = document.errors[0] ?? document.warnings[0];
  if (trouble) {
    const { line } = lines.linePos(trouble.pos[0]);
    throw new Error(`line ${line}: ${trouble.message.split("\n")[0] ?? ""}`);
  }
  return {
    value: document.toJS({ maxAliasCount: 10 }) as unknown,
    placeOf(path) {
      // The field itself may be missing; then the position of its parent is used.
      for (let length = path.length; length > 0; length--) {
        const node = document.getIn(path.slice(0, length), true) as { range?: [number, number, number] } | undefined;
        if (node?.range) return ` line ${lines.linePos(node.range[0]).line}`;
      }
      return "";
    },
  };
}
