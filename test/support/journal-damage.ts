// Damages journal files as disks, copies and people do: a bit, a cut, a hole, a lost, swapped or doubled piece, anywhere.
// Refuses to know what a frame is: it works on bytes, so that it meets what no reader of frames would think of.

export interface DamagedFile {
  name: string;
  bytes: Buffer;
}

export interface Damage {
  /** What was done, where: `flip journal-1.log 117`. */
  label: string;
  /** Made when it is read, so that a sample of many costs nothing for the rest. */
  readonly files: DamagedFile[];
}

/** Behind the last byte that says anything lies room: so much of it is damaged too. */
const ROOM_BYTES = 80;
const MAX_PIECE_BYTES = 300;

/** Names that a second copy of a file gets: a number of its own, as the journal's files have. */
function copyName(name: string): string {
  return name.replace(/\d+/, (number) => String(Number(number) + 100));
}

/** The place behind the last byte that is not zero. */
function contentEnd(bytes: Buffer): number {
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end--;
  return end;
}

/**
 * Every damage at every place of every file. `random` (0 to 1) chooses bits and lengths: the same one gives the same
 * damages again. The given files are never changed.
 */
export function* damages(files: readonly DamagedFile[], random: () => number): Generator<Damage> {
  const whole = (limit: number) => Math.floor(random() * limit);

  function made(label: string, make: () => DamagedFile[]): Damage {
    return {
      label,
      get files() {
        return make();
      },
    };
  }

  function changed(name: string, change: (bytes: Buffer) => Buffer): DamagedFile[] {
    return files.map((file) =>
      file.name === name ? { name, bytes: change(Buffer.from(file.bytes)) } : { ...file },
    );
  }

  for (const [index, { name, bytes }] of files.entries()) {
    yield made(`delete ${name}`, () => files.filter((file) => file.name !== name));
    yield made(`empty ${name}`, () => changed(name, () => Buffer.alloc(0)));
    yield made(`zero ${name}`, () => changed(name, (all) => all.fill(0)));
    yield made(`duplicate ${name}`, () => [...files, { name: copyName(name), bytes: Buffer.from(bytes) }]);
    for (const other of files.slice(index + 1)) {
      yield made(`swap ${name} ${other.name}`, () =>
        files.map((file) => {
          const from = file.name === name ? other : file.name === other.name ? { bytes } : file;
          return { name: file.name, bytes: Buffer.from(from.bytes) };
        }),
      );
    }

    const end = Math.min(bytes.length, contentEnd(bytes) + ROOM_BYTES);
    for (let at = 0; at < end; at++) {
      const bit = 1 << whole(8);
      const length = 1 + whole(MAX_PIECE_BYTES);
      const to = whole(end);
      yield made(`flip ${name} ${at}`, () =>
        changed(name, (all) => {
          all[at] = (all[at] ?? 0) ^ bit;
          return all;
        }),
      );
      yield made(`cut ${name} ${at}`, () => changed(name, (all) => all.subarray(0, at)));
      yield made(`zero ${name} ${at}+${length}`, () =>
        changed(name, (all) => all.fill(0, at, Math.min(all.length, at + length))),
      );
      yield made(`zero ${name} ${at} to its end`, () => changed(name, (all) => all.fill(0, at)));
      yield made(`remove ${name} ${at}+${length}`, () =>
        changed(name, (all) => Buffer.concat([all.subarray(0, at), all.subarray(at + length)])),
      );
      yield made(`double ${name} ${at}+${length}`, () =>
        changed(name, (all) => Buffer.concat([all.subarray(0, at + length), all.subarray(at)])),
      );
      yield made(`swap ${name} ${at} ${to}+${length}`, () =>
        changed(name, (all) => {
          const low = Math.min(at, to);
          const high = Math.max(at, to);
          const size = Math.min(length, high - low, all.length - high);
          const piece = Buffer.from(all.subarray(low, low + size));
          all.copy(all, low, high, high + size);
          piece.copy(all, high);
          return all;
        }),
      );
    }
  }
}

/** So many of them, each as likely as any other. */
export function sampleOf<T>(all: Iterable<T>, count: number, random: () => number): T[] {
  const chosen: T[] = [];
  let seen = 0;
  for (const each of all) {
    seen++;
    if (chosen.length < count) chosen.push(each);
    else {
      const place = Math.floor(random() * seen);
      if (place < count) chosen[place] = each;
    }
  }
  return chosen;
}
