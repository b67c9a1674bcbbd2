// The words of the docs, of src and of examples: phrases that hide who acts or that a reader has to decode, each with what
// to write instead, and a count of sentences that name no actor. In code, comments and strings are judged. `npm run docs --
// --words` prints the count; `test/tidy.test.ts` refuses the phrases.

/** Words that stand where the actor should: at most this share of sentences may have one. */
export const MOST_ACTORLESS = 0.003;

const ACTORLESS = /\b(?:nobody|somebody|whoever)\b/i;

/** What docs, comments and messages do not say, and what they say instead. */
export const PHRASES = [
  ["nobody", 'name the actor: "no worker", "no caller", "no attempt is charged"'],
  ["somebody", "name the actor: another worker, another transaction, the operator"],
  ["whoever", 'name the actor: "any process that", "the caller that"'],
  ["anew", "again"],
  ["for good", "permanently"],
  ["over its head", "without waiting for it"],
  ["over the head of", "without waiting for"],
  ["a word of its own", "its own setting, or its own message"],
  ["without a word", "silently, or without a setting"],
  ["what waits", "the jobs that wait"],
  ["is a word to all", "applies to all jobs"],
  ["by the name of its type alone", '"by type name, without the definition"'],
].map(([phrase, instead]) => ({ phrase, instead }));

/** The SQL of a schema, comments included, is part of a version that does not change any more. */
const isFrozenSql = (path) => /^src\/store\/\w+\/schema\.ts$/.test(path);
const isSource = (path) => /^(src|examples)\/.*\.(ts|mjs)$/.test(path);
const isPage = (path) => /^(README|CONTRIBUTING|SECURITY|CHANGELOG)\.md$|^docs\/.*\.md$/.test(path);
/** Pages made from source: what they say is changed there. */
const isMade = (path) => /^docs\/reference\/(options|cli)\.md$/.test(path);

/** The lines of a page that people wrote, each with its number: no code blocks, no code in a line, no comments. */
function proseOf(text) {
  let isCode = false;
  return text.split("\n").map((line, i) => {
    const isFence = line.startsWith("```");
    if (isFence) isCode = !isCode;
    const prose = isCode || isFence ? "" : line.replace(/`[^`]*`/g, "X").replace(/<!--.*?-->/g, "");
    return { line: i + 1, prose };
  });
}

/** Comments, strings and regular expressions; the latter only to skip the quotes in them. */
const TOKENS =
  /\/\/[^\n]*|\/\*[^]*?\*\/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\[^])*`|(?<=[(,=:[!&|?{};\n]\s*)\/(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\//g;
/** Keeps the words of two strings, or of a string and a comment, from being read as one phrase. */
const APART = " ; ";

/** What people read of a source file: its comments, without code in backticks, and its strings, without the values in them. */
function proseOfCode(text, { strings = true } = {}) {
  const lines = text.split("\n").map((_, i) => ({ line: i + 1, prose: "", comment: "" }));
  const newlines = [...text.matchAll(/\n/g)].map(({ index }) => index);
  for (const { 0: token, index } of text.matchAll(TOKENS)) {
    const isComment = /^\/[/*]/.test(token);
    if (!isComment && (!strings || token.startsWith("/"))) continue;
    const first = newlines.findLastIndex((at) => at < index) + 1;
    const plain = isComment ? token.replace(/`[^`]*`/g, "X") : token.replace(/\$\{[^}]*\}/g, "X");
    for (const [i, part] of `${plain}${isComment ? "" : APART}`.split("\n").entries()) {
      const words = isComment ? part.replace(/^\s*(?:\/\/|\/?\*+\/?) ?/, "").replace(/\s*\*\/$/, "") : part;
      lines[first + i].prose += words;
      if (isComment) lines[first + i].comment += words;
    }
  }
  for (const each of lines) each.prose ||= APART;
  return lines;
}

/** The phrases that a page or a source file has and should not, each with its line. A phrase may go over the end of a line. */
export function phrasesIn({ path, text }) {
  if (!isSource(path) && (!isPage(path) || isMade(path))) return [];
  const lines = isSource(path) ? proseOfCode(text, { strings: !isFrozenSql(path) }) : proseOf(text);
  const starts = [];
  let whole = "";
  for (const { prose } of lines) {
    starts.push(whole.length);
    whole += `${prose.trim()} `;
  }
  const lineAt = (index) => starts.findLastIndex((start) => start <= index) + 1;
  return PHRASES.flatMap(({ phrase, instead }) =>
    [...whole.matchAll(new RegExp(`\\b${phrase.replaceAll(" ", "\\s+")}\\b`, "gi"))].map(({ index }) => ({
      line: lineAt(index),
      phrase,
      instead,
    })),
  ).toSorted((a, b) => a.line - b.line);
}

/** The sentences of a page: paragraphs and list items cut at their full stops, and every cell of a table. */
export function sentencesIn(text) {
  const blocks = [];
  let open = false;
  for (const { prose } of proseOf(text)) {
    const line = prose.trim();
    if (line.startsWith("|")) blocks.push(...line.split("|"));
    else if (line === "" || line.startsWith("#")) blocks.push(line.replace(/^#+ /, ""));
    else if (!open || /^([-*]|\d+\.) /.test(line)) blocks.push(line);
    else blocks.push(`${blocks.pop()} ${line}`);
    open = line !== "" && !line.startsWith("|") && !line.startsWith("#");
  }
  const sentences = blocks.flatMap((block) => block.split(/(?<=[.!?])\s+(?=[\p{Lu}`*[])/u));
  return sentences.map((sentence) => sentence.trim()).filter((sentence) => /\w+\W+\w+\W+\w+/.test(sentence));
}

/** The comments of a source file as a page: a blank line between two of them. */
const commentsIn = (text) =>
  proseOfCode(text)
    .map(({ comment }) => comment)
    .join("\n");

/** How many sentences of these pages, and of the comments of these source files, name no actor. */
export function countActorless(files) {
  const counted = files
    .filter(({ path }) => isPage(path) || isSource(path))
    .map(({ path, text }) => ({ path, all: sentencesIn(isSource(path) ? commentsIn(text) : text) }));
  const sentences = counted.reduce((sum, { all }) => sum + all.length, 0);
  const found = counted.flatMap(({ path, all }) =>
    all.filter((sentence) => ACTORLESS.test(sentence)).map((sentence) => ({ path, sentence })),
  );
  return { sentences, found, share: sentences === 0 ? 0 : found.length / sentences };
}
