// The words of the docs: phrases that hide who acts or that a reader has to decode, each with what to write instead, and a
// count of sentences that name no actor. `npm run docs -- --words` prints the count; `test/tidy.test.ts` refuses the phrases.

/** Words that stand where the actor should: at most this share of sentences may have one. */
export const MOST_ACTORLESS = 0.003;

const ACTORLESS = /\b(?:nobody|somebody|whoever)\b/i;

/** What docs do not say, and what they say instead. */
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

/** The phrases that a page has and should not, each with its line. A phrase may go over the end of a line. */
export function phrasesIn({ path, text }) {
  if (!isPage(path) || isMade(path)) return [];
  const lines = proseOf(text);
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

/** How many sentences of these pages name no actor. */
export function countActorless(pages) {
  const counted = pages.filter(({ path }) => isPage(path)).map(({ path, text }) => ({ path, all: sentencesIn(text) }));
  const sentences = counted.reduce((sum, { all }) => sum + all.length, 0);
  const found = counted.flatMap(({ path, all }) =>
    all.filter((sentence) => ACTORLESS.test(sentence)).map((sentence) => ({ path, sentence })),
  );
  return { sentences, found, share: sentences === 0 ? 0 : found.length / sentences };
}
