// Reads of accounts in flight, kept apart from writes: a read that a write overtook is recognised as old. The reader
// repeats it or leaves the row to its writer.

/** Which rows were written since a read began. */
export interface Overtaken {
  user(id: number): boolean;
  token(id: number): boolean;
  /** Some key was: any of them may be the one that was not there yet. */
  anyToken(): boolean;
}

/** One read in flight. */
interface Read {
  users: Set<number>;
  tokens: Set<number>;
  /** Something was written, and nobody knows what. */
  isWhole: boolean;
}

export interface ReadsInFlight {
  /** Runs the read, which is handed what is written meanwhile. */
  track<T>(read: (overtaken: Overtaken) => Promise<T>): Promise<T>;
  wroteUser(id: number): void;
  wroteToken(id: number): void;
  /** Nobody knows which rows. */
  wroteSome(): void;
  /** The rows are busy until the returned function is called; both ends count as writes. */
  beginWrite(userIds: readonly number[], tokenIds: readonly number[]): () => void;
  isUserBusy(id: number): boolean;
  isTokenBusy(id: number): boolean;
}

export function createReadsInFlight(): ReadsInFlight {
  const inFlight = new Set<Read>();
  const busyUsers = new Map<number, number>();
  const busyTokens = new Map<number, number>();

  function wroteUser(id: number): void {
    for (const read of inFlight) read.users.add(id);
  }

  function wroteToken(id: number): void {
    for (const read of inFlight) read.tokens.add(id);
  }

  return {
    async track(read) {
      const written: Read = { users: new Set(), tokens: new Set(), isWhole: false };
      inFlight.add(written);
      try {
        return await read({
          user: (id) => written.isWhole || written.users.has(id),
          token: (id) => written.isWhole || written.tokens.has(id),
          anyToken: () => written.isWhole || written.tokens.size > 0,
        });
      } finally {
        inFlight.delete(written);
      }
    },
    wroteUser,
    wroteToken,
    wroteSome() {
      for (const read of inFlight) read.isWhole = true;
    },
    beginWrite(userIds, tokenIds) {
      for (const id of userIds) beginBusy(busyUsers, id, wroteUser);
      for (const id of tokenIds) beginBusy(busyTokens, id, wroteToken);
      return () => {
        for (const id of userIds) endBusy(busyUsers, id, wroteUser);
        for (const id of tokenIds) endBusy(busyTokens, id, wroteToken);
      };
    },
    isUserBusy: (id) => busyUsers.has(id),
    isTokenBusy: (id) => busyTokens.has(id),
  };
}

function beginBusy(counts: Map<number, number>, id: number, wrote: (id: number) => void): void {
  counts.set(id, (counts.get(id) ?? 0) + 1);
  wrote(id);
}

function endBusy(counts: Map<number, number>, id: number, wrote: (id: number) => void): void {
  const left = (counts.get(id) ?? 1) - 1;
  if (left > 0) counts.set(id, left);
  else counts.delete(id);
  wrote(id);
}
