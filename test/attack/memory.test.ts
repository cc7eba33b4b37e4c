// C4 from outside: what strangers, keys and upstreams can make the process hold in memory, measured at its peak.
// Refuses averages: the kernel's own high-water mark of the process is forgotten before each attack and read after it.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connectFrom } from "../support/outsider.ts";
import { promptOf } from "../support/mock-upstream.ts";
import { startStretch } from "../support/stretch.ts";
import { callPlan, forgetPeak, memoryOf, MODELS, startSite } from "./site.ts";
import type { Site } from "./site.ts";

const MIB = 1024 * 1024;

describe("memory", () => {
  let site: Site;
  let key = "";
  beforeAll(async () => {
    site = await startSite();
    const person = await site.person(1_000_000_000);
    key = await person.key();
    // Warm: what the first calls load is not the attack's.
    await Promise.all(
      Array.from({ length: 50 }, (_, id) => callPlan(site.server.url, key, { id: `warm-${id}` })),
    );
  });
  afterAll(() => site.remove());

  /**
   * By how many MiB the peak rose, and the longest wait of somebody else in the meantime, as if the machine had nothing else to
   * do than both.
   */
  async function grown(attack: () => Promise<unknown>): Promise<{ mib: number; longestWaitMs: number }> {
    const pid = site.server.pid ?? 0;
    await forgetPeak(pid);
    const before = (await memoryOf(pid)).now;
    const stretches = [startStretch(pid), startStretch()];
    let isOver = false;
    let longestWaitMs = 0;
    const visitor = (async () => {
      while (!isOver) {
        const beganMs = performance.now();
        await (await fetch(`${site.server.url}/api/status`)).text();
        longestWaitMs = Math.max(longestWaitMs, performance.now() - beganMs);
        await Bun.sleep(20);
      }
    })();
    await attack();
    isOver = true;
    await visitor;
    const mib = (await memoryOf(pid)).peak - before;
    const slowness = Math.max(...stretches.map((stretch) => stretch()));
    const told = `longest wait ${Math.round(longestWaitMs)} ms, processor ${slowness.toFixed(1)} times as slow`;
    console.log(`${Math.round(mib)} MiB more, ${told}`);
    return { mib, longestWaitMs: longestWaitMs / slowness };
  }

  test("C4: a dozen large unfinished sign-ins", async () => {
    const host = new URL(site.server.url).host;
    const { mib } = await grown(async () => {
      const open = await Promise.all(
        Array.from({ length: 12 }, () => connectFrom("127.0.0.4", site.server.url)),
      );
      const part = Buffer.alloc(MIB, 120);
      for (const connection of open)
        connection.send(
          `POST /api/user/login HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\ncontent-length: ${31 * MIB}\r\n\r\n`,
        );
      for (let sent = 0; sent < 30; sent++) {
        for (const connection of open) connection.send(part);
        await Bun.sleep(20);
      }
      await Bun.sleep(500);
      for (const connection of open) connection.end();
    });
    expect(mib).toBeLessThan(120);
  }, 60_000);

  test("C4: two dozen large unfinished calls of one key", async () => {
    const host = new URL(site.server.url).host;
    const { mib } = await grown(async () => {
      const open = await Promise.all(
        Array.from({ length: 24 }, () => connectFrom("127.0.0.5", site.server.url)),
      );
      const part = Buffer.alloc(MIB, 120);
      for (const connection of open)
        connection.send(
          `POST /v1/chat/completions HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${63 * MIB}\r\n\r\n`,
        );
      for (let sent = 0; sent < 60; sent++) {
        for (const connection of open) connection.send(part);
        await Bun.sleep(20);
      }
      await Bun.sleep(500);
      for (const connection of open) connection.end();
    });
    // Of 1,440 that are sent: what one key may hold, and what a slow machine has not collected yet.
    expect(mib).toBeLessThan(1000);
  }, 60_000);

  test("C4: 64 KiB of gzip that inflate to 64 MiB and more", async () => {
    const bomb = Bun.gzipSync(Buffer.alloc(80 * MIB, 32));
    expect(bomb.length).toBeLessThan(100 * 1024);
    const statuses: number[] = [];
    const { mib } = await grown(async () => {
      for (const path of ["/v1/chat/completions", "/api/user/login"])
        for (let round = 0; round < 3; round++) {
          const answer = await fetch(site.server.url + path, {
            method: "POST",
            headers: {
              authorization: `Bearer ${key}`,
              "content-type": "application/json",
              "content-encoding": "gzip",
            },
            body: bomb,
          });
          await answer.text();
          statuses.push(answer.status);
        }
    });
    expect(statuses.filter((status) => status < 400)).toEqual([]);
    // One inflated body alone would be 80.
    expect(mib).toBeLessThan(60);
  }, 60_000);

  test("C4: waves of counting", async () => {
    const text = "tip tap ".repeat(900_000);
    const { mib, longestWaitMs } = await grown(async () => {
      for (let wave = 0; wave < 2; wave++) {
        await Promise.all(
          Array.from({ length: 24 }, async () => {
            const answer = await fetch(`${site.server.url}/v1/messages/count_tokens`, {
              method: "POST",
              headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
              body: JSON.stringify({
                model: MODELS["openai-chat"],
                messages: [{ role: "user", content: text }],
              }),
              signal: AbortSignal.timeout(15_000),
            }).catch(() => undefined);
            await answer?.text().catch(() => undefined);
          }),
        );
      }
    });
    expect(mib).toBeLessThan(700);
    expect(longestWaitMs).toBeLessThan(2000);
  }, 90_000);

  test("C4: an upstream's answer of 300 MB", async () => {
    let status = 0;
    const { mib, longestWaitMs } = await grown(async () => {
      const answer = await fetch(`${site.server.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({
          model: MODELS["openai-chat"],
          messages: [{ role: "user", content: promptOf({ id: "huge", bytes: 300 * MIB }) }],
        }),
      });
      for await (const part of answer.body as ReadableStream<Uint8Array>) void part.length;
      status = answer.status;
    });
    expect(status).toBeGreaterThanOrEqual(500);
    // It is never there whole.
    expect(mib).toBeLessThan(150);
    expect(longestWaitMs).toBeLessThan(1500);
  }, 90_000);
});
