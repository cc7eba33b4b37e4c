// Group commit: batches stay together and in order, a lone caller waits for the disk itself, a failure is told.
// Refuses files and databases; journal.test.ts and the ledger's tests have them.
import { expect, test } from "bun:test";
import { createGroupCommit, MAX_BATCH } from "../../../src/core/ledger/group-commit.ts";

const never = () => Promise.reject(new Error("not needed"));

test("items of one tick are written together, at most 500 at once, in order", async () => {
  const batches: number[][] = [];
  const queue = createGroupCommit<number>({
    write: (items) => void batches.push([...items]),
    writeLater: never,
    lost: never,
    running: () => 0,
  });
  const numbers = Array.from({ length: 2 * MAX_BATCH + 7 }, (_, index) => index);
  await Promise.all(numbers.map((number) => queue.add(number)));
  expect(batches.map((batch) => batch.length)).toEqual([MAX_BATCH, MAX_BATCH, 7]);
  expect(batches.flat()).toEqual(numbers);
});

test("while others run one write is under way at a time, and what comes meanwhile is the next batch", async () => {
  const batches: number[][] = [];
  const done: (() => void)[] = [];
  const queue = createGroupCommit<number>({
    write: () => {
      throw new Error("the event loop would wait for the disk");
    },
    writeLater: (items) => {
      batches.push([...items]);
      const { promise, resolve } = Promise.withResolvers<void>();
      done.push(resolve);
      return promise;
    },
    lost: never,
    running: () => 1,
  });
  const settled: number[] = [];
  const add = (number: number) => queue.add(number).then(() => void settled.push(number));
  const turns = async () => {
    for (let turn = 0; turn < 40; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
  };
  const first = add(1);
  await turns();
  const later = [add(2), add(3)];
  const flushed = queue.flush().then(() => settled.push(-1));
  await turns();
  expect([batches, settled]).toEqual([[[1]], []]);
  done[0]?.();
  await first;
  await turns();
  expect([batches, settled]).toEqual([[[1], [2, 3]], [1]]);
  done[1]?.();
  await Promise.all([...later, flushed]);
  expect(settled).toEqual([1, 2, 3, -1]);
});

test.each(["at once", "later"] as const)(
  "what could not be written %s is told to whoever handed it in, and the queue goes on",
  async (when) => {
    let isFull = true;
    const written: number[] = [];
    const write = (items: readonly number[]) => {
      if (isFull) throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
      written.push(...items);
    };
    const queue = createGroupCommit<number>({
      write,
      writeLater: async (items) => write(items),
      lost: (items, error) => ({ items, error: String(error) }),
      running: () => (when === "later" ? 1 : 0),
    });
    const outcomes = await Promise.allSettled([1, 2].map((number) => queue.add(number)));
    const reason = { items: [1, 2], error: "Error: no space left on device" };
    expect(outcomes).toEqual([1, 2].map(() => ({ status: "rejected", reason })));
    isFull = false;
    await queue.add(3);
    expect(written).toEqual([3]);
  },
);
