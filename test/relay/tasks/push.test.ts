// Pushes to a drawing: they change how far it is, its texts and pictures. No push moves a time or a status backwards,
// reopens what has ended, or leads to a refund while the upstream itself says that it draws; on both databases.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { eq } from "drizzle-orm";
import fc from "fast-check";
import { audit } from "../../../src/core/ledger/audit.ts";
import { DRAWINGS } from "../../../src/core/tasks/families.ts";
import type { DrawingRow } from "../../../src/core/tasks/families.ts";
import { addTask } from "../../../src/core/tasks/store.ts";
import { pollTasks } from "../../../src/relay/tasks/poll.ts";
import type { TestUser } from "../../support/app.ts";
import { startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

type Json = Record<string, unknown>;

const PRICE = 50_000;
const STATUSES = ["", "NOT_START", "SUBMITTED", "IN_PROGRESS", "MODAL", "SUCCESS", "FAILURE", "failure", "X"];

for (const database of ["sqlite", "postgres"] as const) {
  describe(`on ${database}`, () => {
    let g: Gateway;
    let operator: TestUser;
    let channelId = 0;
    let nowMs = 1_900_000_000_000;
    let serial = 0;
    const upstream = new Map<string, Json>();
    const asked: string[][] = [];
    const server = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => {
        const body = JSON.parse(Buffer.concat(parts).toString() || "{}") as Json;
        const send = (value: unknown) =>
          response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
        if (request.url !== "/mj/task/list-by-condition")
          return send({ code: 1, description: "ok", result: `task-${++serial}` });
        const ids = body["ids"] as string[];
        asked.push(ids);
        return send(ids.flatMap((id) => (upstream.has(id) ? [{ id, ...upstream.get(id) }] : [])));
      });
    });

    beforeAll(async () => {
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      g = await startGateway({ database, quota: 100_000_000, clock: { nowMs: () => nowMs } });
      operator = await g.app.createUser({ role: 10 });
      channelId = await g.app.createChannel({ type: 2, baseUrl, models: "mj_imagine", key: "k" });
    });
    afterAll(async () => {
      await g.close();
      server.closeAllConnections();
      server.close();
    });
    beforeEach(() => {
      upstream.clear();
      asked.length = 0;
    });
    afterEach(async () => {
      const { drawings } = g.app.deps.db.t;
      await g.app.deps.ledger.flush();
      expect((await audit(g.app.deps.db)).differences).toEqual([]);
      await g.app.deps.db.orm.update(drawings).set({ progress: "100%" }).returning({ id: drawings.id });
    });

    const poll = (afterMs = 15_000) => {
      nowMs += afterMs;
      return pollTasks(g.app.deps);
    };
    const imagine = async (): Promise<string> => {
      const answer = (await (await g.post("/mj/submit/imagine", { prompt: "x" })).json()) as Json;
      return String(answer["result"]);
    };
    const push = async (body: Json, headers?: Record<string, string>) =>
      expect((await g.post("/mj/notify", body, headers)).status).toBe(200);
    const row = async (mjId: string): Promise<DrawingRow> => {
      const { drawings } = g.app.deps.db.t;
      const [found] = await g.app.deps.db.orm.select().from(drawings).where(eq(drawings.mjId, mjId));
      if (!found) throw new Error("no row");
      return found;
    };

    test("a drawing that was pushed into the past goes on, and stays paid", async () => {
      const before = await g.balance();
      const id = await imagine();
      const made = await row(id);
      upstream.set(id, { progress: "20%", status: "IN_PROGRESS" });
      await push({ id, submitTime: 1, startTime: 1, finishTime: 1 });
      expect(await row(id)).toMatchObject({
        submitTimeMs: made.submitTimeMs,
        startTimeMs: 0,
        finishTimeMs: 0,
      });
      await poll();
      expect(await row(id)).toMatchObject({ status: "IN_PROGRESS", progress: "20%", refunded: false });
      expect(before.quota - (await g.balance()).quota).toBe(PRICE);
    });

    test("a pushed failure makes the poller ask now, and gives nothing back while the upstream draws", async () => {
      const before = await g.balance();
      const id = await imagine();
      upstream.set(id, { progress: "20%", status: "IN_PROGRESS" });
      await poll();
      const { drawings } = g.app.deps.db.t;
      const later = { nextPollMs: nowMs + 200_000 };
      await g.app.deps.db.orm.update(drawings).set(later).where(eq(drawings.mjId, id));
      for (const failed of [
        { status: "FAILURE" },
        { status: "FAILURE", progress: "100%", failReason: "no" },
        { failReason: "no" },
        { status: "IN_PROGRESS", progress: "100%", failReason: "no" },
      ]) {
        asked.length = 0;
        await push({ id, ...failed });
        expect(await row(id)).toMatchObject({ status: "IN_PROGRESS", failReason: "", refunded: false });
        expect((await row(id)).progress).not.toBe("100%");
        await poll(0);
        expect(asked).toEqual([[id]]);
        expect(before.quota - (await g.balance()).quota).toBe(PRICE);
        await g.app.deps.db.orm.update(drawings).set(later).where(eq(drawings.mjId, id));
      }
      // The upstream's own word gives the charge back.
      upstream.set(id, { progress: "20%", status: "FAILURE", failReason: "banned" });
      await push({ id, status: "FAILURE" });
      await poll(0);
      expect(await row(id)).toMatchObject({ status: "FAILURE", progress: "100%", refunded: true });
      expect((await g.balance()).quota).toBe(before.quota);
    });

    test("a status goes forwards only, with times of our own clock; what has ended stays as it ended", async () => {
      const id = await imagine();
      await push({ id, status: "IN_PROGRESS", progress: "40%", promptEn: "a weir", startTime: 5 });
      const began = await row(id);
      expect(began).toMatchObject({ status: "IN_PROGRESS", progress: "40%", promptEn: "a weir" });
      expect(began.startTimeMs).toBe(nowMs);
      nowMs += 1000;
      for (const status of ["", "NOT_START", "SUBMITTED", "MODAL", "DONE", "failure"])
        await push({ id, status, progress: "10%" });
      expect(await row(id)).toMatchObject({
        status: "IN_PROGRESS",
        progress: "40%",
        startTimeMs: nowMs - 1000,
      });
      // All of it, but not finished: that is the status's to say.
      await push({ id, progress: "100%" });
      expect((await row(id)).progress).toBe("99%");
      await push({ id, status: "SUCCESS", finishTime: 7, imageUrl: "https://pictures.example/a.png" });
      const done = { status: "SUCCESS", progress: "100%", finishTimeMs: nowMs };
      expect(await row(id)).toMatchObject({ ...done, imageUrl: "https://pictures.example/a.png" });
      await push({
        id,
        status: "FAILURE",
        progress: "1%",
        failReason: "late",
        imageUrl: "https://x.example/b",
      });
      await push({ id, status: "IN_PROGRESS", progress: "1%", promptEn: "other" });
      expect(await row(id)).toMatchObject({ ...done, failReason: "", promptEn: "a weir" });
      expect((await row(id)).imageUrl).toBe("https://pictures.example/a.png");
    });

    test("no row of pushes, by owner or operator, brings anything back while the upstream draws", async () => {
      const { key } = await g.app.createToken(operator.id);
      const time = fc.oneof(fc.integer(), fc.constantFrom(1, -1, 0, 1e18, Number.MAX_SAFE_INTEGER));
      const body = fc.record(
        {
          status: fc.constantFrom(...STATUSES),
          progress: fc.constantFrom("0%", "50%", "99%", "100%", "100", "-1%", "x", "1000%"),
          failReason: fc.constantFrom("", "no"),
          submitTime: time,
          startTime: time,
          finishTime: time,
          quota: fc.constantFrom(0, 1, -1),
          imageUrl: fc.constantFrom("", "https://pictures.example/a.png"),
        },
        { requiredKeys: [] },
      );
      const pushes = fc.array(fc.tuple(body, fc.boolean()), { minLength: 1, maxLength: 4 });
      for (const run of fc.sample(pushes, 15)) {
        const before = await g.balance();
        const id = await imagine();
        const { submitTimeMs } = await row(id);
        upstream.set(id, { progress: "20%", status: "IN_PROGRESS" });
        for (const [fields, isOperator] of run) {
          await push({ id, ...fields }, isOperator ? { authorization: `Bearer ${key}` } : undefined);
          await poll();
        }
        const after = await row(id);
        expect([run, after.refunded, after.quota, after.submitTimeMs]).toEqual([
          run,
          false,
          PRICE,
          submitTimeMs,
        ]);
        expect([run, before.quota - (await g.balance()).quota]).toEqual([run, PRICE]);
      }
    });

    test("a push that was judged by an older row does not undo what came meanwhile", async () => {
      const made = { userId: g.user.id, channelId, action: "IMAGINE", submitTimeMs: nowMs };
      await addTask(g.app.deps, DRAWINGS, { ...made, mjId: "crowd" });
      const sent = ["NOT_START", "SUBMITTED", "IN_PROGRESS"].flatMap((status, i) =>
        Array.from({ length: 4 }, (_, k) => ({ id: "crowd", status, progress: `${i * 10 + k + 1}%` })),
      );
      await Promise.all(sent.map((body) => push(body)));
      expect(await row("crowd")).toMatchObject({ status: "IN_PROGRESS" });
    });
  });
}
