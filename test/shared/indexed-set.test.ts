// A set whose members know their place: the same members as in a Set, whatever is added and deleted.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { IndexedSet } from "../../src/shared/indexed-set.ts";

test("holds what a Set would hold, whatever comes and goes", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), fc.nat(9))), (steps) => {
      const items = Array.from({ length: 10 }, (_, name) => ({ name, index: -1 }));
      const [indexed, plain] = [new IndexedSet<(typeof items)[number]>(), new Set<(typeof items)[number]>()];
      for (const [isAdded, name] of steps) {
        const item = items[name];
        if (!item) continue;
        if (isAdded) {
          indexed.add(item);
          plain.add(item);
        } else {
          indexed.delete(item);
          plain.delete(item);
        }
        expect(indexed.size).toBe(plain.size);
        expect(new Set(indexed)).toEqual(plain);
      }
    }),
  );
});

test("whoever is deleted while the set is walked through is still met, once", () => {
  const set = new IndexedSet<{ index: number }>();
  for (let count = 0; count < 5; count++) set.add({ index: -1 });
  let met = 0;
  for (const item of set) {
    met++;
    set.delete(item);
  }
  expect(met).toBe(5);
  expect(set.size).toBe(0);
});
