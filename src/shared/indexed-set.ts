// A set of objects that carry their own place in it, for what comes and goes with every call.
// Refuses members of two such sets at once. JavaScriptCore's Set keeps a chain through what was deleted, so that young
// garbage is held by old nodes and lives until the next full collection: 5 % of a call's processor time (bench/pair.ts).

export interface Indexed {
  /** Place in the set; -1 = in none. Written by the set alone. */
  index: number;
}

export class IndexedSet<T extends Indexed> implements Iterable<T> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  add(item: T): void {
    if (item.index >= 0) return;
    item.index = this.#items.length;
    this.#items.push(item);
  }

  /** The last one takes the place of the one that goes. */
  delete(item: T): void {
    const { index } = item;
    if (index < 0) return;
    item.index = -1;
    const last = this.#items.pop();
    if (last === undefined || last === item) return;
    this.#items[index] = last;
    last.index = index;
  }

  /** Over those that are in it now, whatever is deleted meanwhile. */
  [Symbol.iterator](): Iterator<T> {
    return this.#items.slice()[Symbol.iterator]();
  }
}
