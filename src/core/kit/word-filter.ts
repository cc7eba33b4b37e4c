// Finds forbidden words in prompts: case-insensitive substrings, thousands of words in one pass (Aho–Corasick).
// It only says which word was found first.

export interface WordFilter {
  /** The first forbidden word in the text, in lower case; undefined when there is none. */
  find(text: string): string | undefined;
  /** Length of the longest word in UTF-16 units: what a reader of pieces has to remember of the last ones. */
  readonly longest: number;
}

/** Up to this many words the engine's own substring search beats an automaton. */
const FEW_WORDS = 12;

const NOTHING: WordFilter = { find: () => undefined, longest: 0 };

export function createWordFilter(words: readonly string[]): WordFilter {
  const lowered = [...new Set(words.map((word) => word.trim().toLowerCase()).filter((word) => word !== ""))];
  if (lowered.length === 0) return NOTHING;
  const longest = lowered.reduce((most, word) => Math.max(most, word.length), 0);
  if (lowered.length <= FEW_WORDS) {
    return {
      longest,
      find(text) {
        const haystack = text.toLowerCase();
        return lowered.find((word) => haystack.includes(word));
      },
    };
  }
  return { find: automaton(lowered), longest };
}

/**
 * A trie over UTF-16 units with failure links. Edges lie in one hash map keyed `node * 65536 + unit`; the root, where
 * nearly all characters of innocent text end up, has a plain array.
 */
function automaton(words: readonly string[]): WordFilter["find"] {
  const edges = new Map<number, number>();
  const root = new Int32Array(65_536);
  const fail: number[] = [0];
  /** Index of a word that ends at the node, directly or through its failure links; -1 = none. */
  const word: number[] = [-1];

  const step = (node: number, unit: number): number | undefined =>
    node === 0 ? root[unit] || undefined : edges.get(node * 65_536 + unit);

  words.forEach((text, index) => {
    let node = 0;
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      let next = step(node, unit);
      if (next === undefined) {
        next = fail.length;
        fail.push(0);
        word.push(-1);
        if (node === 0) root[unit] = next;
        else edges.set(node * 65_536 + unit, next);
      }
      node = next;
    }
    word[node] = index;
  });

  // Breadth first: a node's failure link is known before its children need it.
  const children = new Map<number, [number, number][]>();
  for (const [key, child] of edges) {
    const parent = Math.floor(key / 65_536);
    const list = children.get(parent);
    if (list) list.push([key % 65_536, child]);
    else children.set(parent, [[key % 65_536, child]]);
  }
  const queue: number[] = [...root].filter((node) => node !== 0);
  for (let at = 0; at < queue.length; at++) {
    const node = queue[at] ?? 0;
    for (const [unit, child] of children.get(node) ?? []) {
      let link = fail[node] ?? 0;
      while (link !== 0 && step(link, unit) === undefined) link = fail[link] ?? 0;
      const target = step(link, unit) ?? 0;
      fail[child] = target;
      if (word[child] === -1) word[child] = word[target] ?? -1;
      queue.push(child);
    }
  }

  return (text) => {
    const haystack = text.toLowerCase();
    let node = 0;
    for (let i = 0; i < haystack.length; i++) {
      const unit = haystack.charCodeAt(i);
      let next = node === 0 ? root[unit] : edges.get(node * 65_536 + unit);
      while (next === undefined) {
        node = fail[node] ?? 0;
        next = node === 0 ? root[unit] : edges.get(node * 65_536 + unit);
      }
      node = next;
      const found = word[node] ?? -1;
      if (found !== -1) return words[found];
    }
    return undefined;
  };
}
