// What nodes write of one session in Valkey. Refuses the choice of channels, which relay/call/affinity-nodes.test.ts looks at.
import { expect, test } from "bun:test";
import { createSharedAffinity } from "../../../src/core/channels/shared-affinity.ts";
import type { SharedBinding } from "../../../src/core/channels/shared-affinity.ts";
import { openValkey } from "../../../src/db/valkey.ts";
import { parseValkeyUrl } from "../../../src/db/valkey-url.ts";
import { startRedis } from "../../support/redis.ts";

const known = new Set<string>();
const LISTENER = { moved: () => undefined, cleared: () => known, gap: () => undefined };
const BINDING: SharedBinding = { channelId: 7, keyHash: "", isMixed: true, ttlMs: 60_000, rule: "a 0 b" };

test("a node that knows less does not undo that a session is mixed; a session that leaves begins anew", async () => {
  const redis = await startRedis();
  const address = parseValkeyUrl(redis.url);
  if (typeof address !== "object") throw new Error("no address");
  const valkey = await openValkey({
    address,
    prefix: "test:",
    monotonicMs: () => performance.now(),
    deadlineTicks: 500,
    logger: { info: () => undefined, warn: () => undefined },
  });
  try {
    const shared = createSharedAffinity(valkey, LISTENER);
    const write = (isMixed: boolean, mode: "found" | "moved") =>
      shared.write("s", { ...BINDING, isMixed }, { leftMs: 60_000, mode, other: () => undefined });
    // Behind the writes, on the same connection.
    const found = async () => (await shared.find(["s"], () => undefined))?.[0];
    write(true, "found");
    write(false, "found");
    expect(await found()).toMatchObject(BINDING);
    write(false, "moved");
    expect(await found()).toMatchObject({ isMixed: false });
    // What was written here and arrives when another node has removed all: it goes as soon as this node hears of that.
    known.add("s");
    while (await found()) await redis.command("PUBLISH", "test:affinity", "other all ");
  } finally {
    valkey.close();
    await redis.remove();
  }
});
