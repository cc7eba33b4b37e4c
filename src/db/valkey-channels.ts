// Messages between processes through a Valkey: a connection of its own, because one that listens takes no other commands.
// Refuses to trust a connection that is only open: one on which this process does not hear itself is replaced, and whoever
// listens is told that messages may be lost.
import { randomBytes } from "node:crypto";
import type { RedisClient } from "bun";

/** This process has not heard itself for so long. */
const DEAF_MS = 4000;

interface Listener {
  heard: (text: string) => void;
  gap: () => void;
}

export interface ValkeyChannels {
  /**
   * Hears each message once. `onGap`: messages may have passed unheard, what they tell of is read anew; also at the first
   * connection. Returns what ends it.
   */
  subscribe(channel: string, heard: (text: string) => void, onGap: () => void): () => void;
  /** The channel that this process hears itself on. */
  readonly beat: string;
  /** Connects where it should be and is not; called again and again. */
  look(): void;
  close(): void;
}

interface ChannelSettings {
  open: () => Promise<RedisClient>;
  prefix: string;
  monotonicMs: () => number;
  /** A server that has let this process in and says nothing more is given up after so long. */
  limitMs: number;
}

/** Rejects where it takes longer; what it waits for is not ended by that. */
export async function inTime<T>(answer: Promise<T>, limitMs: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error("it does not answer")), limitMs);
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

export function createValkeyChannels({
  open,
  prefix,
  monotonicMs,
  limitMs,
}: ChannelSettings): ValkeyChannels {
  const beat = `beat:${randomBytes(6).toString("hex")}`;
  const listeners = new Map<string, Set<Listener>>();
  let client: RedisClient | undefined;
  let isOpening = false;
  let isClosed = false;
  let heardMs = 0;

  function told(channel: string, text: string): void {
    heardMs = monotonicMs();
    for (const { heard } of listeners.get(channel) ?? []) heard(text);
  }

  const listenOn = (to: RedisClient, channel: string): Promise<unknown> =>
    to.subscribe(prefix + channel, (text) => {
      if (to === client) told(channel, text);
    });

  async function connect(): Promise<void> {
    isOpening = true;
    try {
      const opened = await open();
      client = opened;
      opened.onclose = () => {
        if (client === opened) client = undefined;
      };
      for (const channel of [beat, ...listeners.keys()]) await inTime(listenOn(opened, channel), limitMs);
      heardMs = monotonicMs();
      if (isClosed) return drop();
      for (const all of listeners.values()) for (const { gap } of all) gap();
    } catch {
      drop();
    } finally {
      isOpening = false;
    }
  }

  function drop(): void {
    const old = client;
    client = undefined;
    old?.close();
  }

  function look(): void {
    if (isClosed || isOpening || listeners.size === 0) return;
    if (client && monotonicMs() - heardMs > DEAF_MS) drop();
    if (!client) void connect();
  }

  return {
    beat,
    look,
    subscribe(channel, heard, gap) {
      const listener = { heard, gap };
      const known = listeners.get(channel);
      if (known) known.add(listener);
      else {
        listeners.set(channel, new Set([listener]));
        // A connection that is there, or comes up at this moment, may have passed this channel by.
        if (client) listenOn(client, channel).then(gap, drop);
        else look();
      }
      return () => void listeners.get(channel)?.delete(listener);
    },
    close() {
      isClosed = true;
      drop();
    },
  };
}
