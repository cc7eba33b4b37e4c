// Keeps reads and writes of accounts apart: a read that a write overtook is recognised as old.
// Refuses to decide what to do with an old read: the reader repeats it or leaves it to the writer.

/** One read under way, and which rows were written since it began. */
export interface Flight {
  users: Set<number>;
  tokens: Set<number>;
}

export interface Flights {
  /** Runs the read; its flight collects what is written meanwhile. */
  during<T>(read: (flight: Flight) => Promise<T>): Promise<T>;
  wroteUser(id: number): void;
  wroteToken(id: number): void;
  /** The rows are busy until the returned function is called; both ends count as writes. */
  beginWrite(userIds: readonly number[], tokenIds: readonly number[]): () => void;
  isUserBusy(id: number): boolean;
  isTokenBusy(id: number): boolean;
}

export function createFlights(): Flights {
  const flights = new Set<Flight>();
  const busyUsers = new Map<number, number>();
  const busyTokens = new Map<number, number>();

  function wroteUser(id: number): void {
    for (const flight of flights) flight.users.add(id);
  }

  function wroteToken(id: number): void {
    for (const flight of flights) flight.tokens.add(id);
  }

  return {
    async during(read) {
      const flight: Flight = { users: new Set(), tokens: new Set() };
      flights.add(flight);
      try {
        return await read(flight);
      } finally {
        flights.delete(flight);
      }
    },
    wroteUser,
    wroteToken,
    beginWrite(userIds, tokenIds) {
      for (const id of userIds) hold(busyUsers, id, wroteUser);
      for (const id of tokenIds) hold(busyTokens, id, wroteToken);
      return () => {
        for (const id of userIds) letGo(busyUsers, id, wroteUser);
        for (const id of tokenIds) letGo(busyTokens, id, wroteToken);
      };
    },
    isUserBusy: (id) => busyUsers.has(id),
    isTokenBusy: (id) => busyTokens.has(id),
  };
}

function hold(counts: Map<number, number>, id: number, wrote: (id: number) => void): void {
  counts.set(id, (counts.get(id) ?? 0) + 1);
  wrote(id);
}

function letGo(counts: Map<number, number>, id: number, wrote: (id: number) => void): void {
  const left = (counts.get(id) ?? 1) - 1;
  if (left > 0) counts.set(id, left);
  else counts.delete(id);
  wrote(id);
}
