// What tests of several nodes lean on: a Redis of their own that goes, hangs, forgets and comes back as told.
// Refuses to test Redis itself.
import { afterAll, expect, test } from "bun:test";
import { RedisClient } from "bun";
import { existsSync, readFileSync } from "node:fs";
import { startRedis } from "./redis.ts";

const redis = await startRedis();
afterAll(() => redis.remove());

function refusalOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "",
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
}

test("it answers, and a flush leaves nothing", async () => {
  await redis.command("SET", "a", "1");
  expect(await redis.command("GET", "a")).toBe("1");
  await redis.flush();
  expect(await redis.command("GET", "a")).toBeNull();
});

test("stopped, it refuses; started again, it stands empty on the same port", async () => {
  await redis.command("SET", "a", "1");
  await redis.stop();
  expect(await refusalOf(redis.command("PING"))).not.toBe("");
  await redis.stop();
  await redis.start();
  expect(await redis.command("GET", "a")).toBeNull();
});

// The kernel says that a process is stopped (state T); nobody has to wait for an answer that does not come.
test.skipIf(process.platform !== "linux")(
  "paused, an open connection hears nothing until it goes on",
  async () => {
    const client = new RedisClient(redis.url);
    await client.connect();
    redis.pause();
    const answer = client.send("PING", []) as Promise<unknown>;
    while (!readFileSync(`/proc/${redis.pid}/stat`, "utf8").includes(") T ")) await Bun.sleep(1);
    expect(Bun.peek.status(answer)).toBe("pending");
    redis.resume();
    expect(await answer).toBe("PONG");
    client.close();
  },
);

test("a paused one can be stopped, and two share nothing", async () => {
  const other = await startRedis({ password: "p@ss w:rd" });
  await redis.command("SET", "only", "here");
  expect(await other.command("GET", "only")).toBeNull();
  other.pause();
  await other.stop();
  await other.start();
  expect(await other.command("PING")).toBe("PONG");
  const stranger = new RedisClient(`redis://127.0.0.1:${other.port}`);
  expect(await refusalOf(stranger.send("PING", []))).toContain("NOAUTH");
  stranger.close();
  await other.remove();
});

test("nothing is written to disk, and memory policies are what a test says", async () => {
  const other = await startRedis({ lines: ["maxmemory-policy allkeys-lru"] });
  const policy = await other.command("CONFIG", "GET", "maxmemory-policy");
  expect(JSON.stringify(policy)).toContain("allkeys-lru");
  const dir = Object.values((await other.command("CONFIG", "GET", "dir")) as Record<string, string>)[0] ?? "";
  await other.command("SET", "a", "1");
  expect(existsSync(dir)).toBe(true);
  await other.remove();
  expect(existsSync(dir)).toBe(false);
});
