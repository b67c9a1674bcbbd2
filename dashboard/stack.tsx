// The stack of an error: frames of the program bold, those of libraries and of Node folded, a click copies `file:line`.
import { Copy } from "./elements.tsx";

interface Frame {
  readonly text: string;
  readonly place: string | null;
  readonly isOwn: boolean;
}

function framesOf(stack: string): readonly Frame[] {
  return stack
    .split("\n")
    .filter((text) => /^\s+at /.test(text))
    .map((text) => {
      const [, place = null] = /\(?((?:file:\/\/)?[^\s()]+:\d+)(?::\d+)?\)?$/.exec(text) ?? [];
      const isOwn = place !== null && !/node_modules|^node:|^internal\//.test(place);
      return { text: text.trim(), place, isOwn };
    });
}

/** A stack. */
export function Stack({ of }: { of: string | null }) {
  const frames = of === null ? [] : framesOf(of);
  if (frames.length === 0) return null;
  const groups: Frame[][] = [];
  for (const frame of frames) {
    const last = groups.at(-1);
    if (last && last[0]?.isOwn === frame.isOwn) last.push(frame);
    else groups.push([frame]);
  }
  return (
    <div class="stack mono">
      {groups.map((group, at) =>
        group[0]?.isOwn ? (
          group.map(({ text, place }, n) => (
            <div key={`${at} ${n}`} class="own">
              {text} {place && <Copy text={place.replace("file://", "")} says="copy place" />}
            </div>
          ))
        ) : (
          <details key={at}>
            <summary>{group.length} of libraries and Node</summary>
            {group.map(({ text }, n) => (
              <div key={n}>{text}</div>
            ))}
          </details>
        ),
      )}
    </div>
  );
}
