// The routing simulator: it names the channel and the key that the next call really gets, who would come after it, and why the
// others would not; and asking it changes nothing.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { testClock } from "../../support/clock.ts";
import { answer, refuse, refuseUntil } from "../../support/fake-upstream.ts";
import type { Script } from "../../support/fake-upstream.ts";
import { startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

interface Candidate {
  id: number;
  order: number;
  key_index: number;
  verdict: string;
  until: number;
  keys: { verdict: string; until: number }[];
}
interface Report {
  groups: string[];
  refused: { status: number; code: string } | null;
  session: { state: string; channel_id: number; reason: string } | null;
  candidates: Candidate[];
}

const clock = testClock();
let g: Gateway;
let root: Awaited<ReturnType<Gateway["app"]["createUser"]>>;
let serial = 0;

beforeAll(async () => {
  g = await startGateway({ clock, quota: 100_000_000_000 });
  root = await g.app.createUser({ role: 100 });
  await g.setOption("SelfUseModeEnabled", "true");
  await g.setOption("RetryTimes", "2");
});
afterAll(() => g.close());
beforeEach(() => g.upstream.reset());

async function route(model: string, fields: object = {}): Promise<Report> {
  const { body } = await g.app.call<{ success: boolean; data: Report }>(
    "POST",
    "/api/channel/route",
    { user_id: g.user.id, token_id: g.tokenId, model, ...fields },
    root,
  );
  expect(body.success).toBe(true);
  return body.data;
}
const verdicts = ({ candidates }: Report): Record<number, string> =>
  Object.fromEntries(candidates.map(({ id, verdict }) => [id, verdict]));
const channel = (model: string, key: string, fields: Record<string, unknown> = {}): Promise<number> =>
  g.app.createChannel({ baseUrl: g.upstream.url, models: model, key, ...fields });
async function call(model: string): Promise<number> {
  const response = await g.chat({ model });
  await response.text();
  return response.status;
}
const askedKey = (at: number): string =>
  String(g.upstream.requests[at]?.headers["authorization"]).slice("Bearer ".length);

test("what it names is what the next call gets, whatever happened before: two hundred calls", async () => {
  const model = `route-${++serial}`;
  const keys = [["a1", "a2", "a3"], ["b1", "b2"], ["c1"], ["d1", "d2"]].map((list) =>
    list.map((key) => `${key}.${serial}`),
  );
  const ids: number[] = [];
  for (const [at, list] of keys.entries())
    ids.push(
      await channel(model, list.join("\n"), {
        priority: at < 3 ? 5 : 1,
        weight: at * 3,
        rpmLimit: at === 1 ? 40 : 0,
      }),
    );
  // A fixed row of numbers in the place of chance: a failure is found again.
  let seed = 20_261_127;
  const next = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((seed / 2_147_483_648) * below);
  };
  const scripts: (() => Script)[] = [
    () => answer("ok"),
    () => answer("ok"),
    () => refuse(503),
    () => refuseUntil(20),
    () => refuse(429),
    () => refuse(403),
  ];
  let refusals = 0;
  g.upstream.always(() => (scripts[next(scripts.length)] ?? scripts[0])?.() ?? answer("ok"));
  for (let i = 0; i < 200; i++) {
    clock.advance(next(12_000));
    const told = await route(model);
    expect(await route(model)).toEqual(told);
    g.upstream.requests.length = 0;
    const status = await call(model);
    const chosen = told.candidates.find(({ order }) => order === 1);
    if (!chosen) {
      refusals++;
      expect([told.refused?.code, status, g.upstream.requests.length]).toEqual([
        "upstream_saturated",
        429,
        0,
      ]);
      continue;
    }
    expect(chosen.verdict).toBe("chosen");
    expect(askedKey(0)).toBe(keys[ids.indexOf(chosen.id)]?.[chosen.key_index] ?? "");
  }
  expect(refusals).toBeLessThan(100);
});

test("a session goes where it is bound, found by its name or by the log's fingerprint; once it cannot, that is said", async () => {
  const model = `route-${++serial}`;
  for (const name of ["a", "b", "c"]) await channel(model, `${name}1\n${name}2`, { priority: 5 });
  const ask = async (headers: Record<string, string>): Promise<string> => {
    const response = await g.chat({ model }, headers);
    await response.text();
    return askedKey(g.upstream.requests.length - 1);
  };
  const session = { "session-id": "my session" };
  const row = await g.charged(() => ask(session));
  const home = row.channelId;
  const key = askedKey(g.upstream.requests.length - 1);
  const note = row.other["admin_info"] as { channel_affinity?: { key_fp?: string } };
  const fingerprint = note.channel_affinity?.key_fp ?? "";
  for (const name of ["my session", fingerprint]) {
    // Other calls move the turn on; it is none of the session's.
    await ask({});
    const told = await route(model, { session: name });
    expect(told.session).toEqual({ state: "kept", channel_id: home, reason: "" });
    const first = told.candidates.find(({ order }) => order === 1);
    expect([first?.id, first?.verdict]).toEqual([home, "chosen"]);
    expect(told.candidates.map(({ order }) => order)).toEqual([1, 2, 3]);
    expect(await ask(session)).toBe(key);
    expect(key.endsWith(String((first?.key_index ?? 0) + 1))).toBe(true);
  }
  expect((await route(model)).session).toBeNull();
  expect((await route(model, { session: "another" })).session?.state).toBe("unbound");
  // Another account's session of the same name is another one.
  const other = await g.app.createUser({ quota: 1 });
  const asOther = await route(model, { session: "my session", user_id: other.id, token_id: 0 });
  expect(asOther.session?.state).toBe("unbound");
  await g.app.call("PUT", "/api/channel/", { id: home, status: 2 }, root);
  const left = await route(model, { session: "my session" });
  expect(left.session).toEqual({ state: "left", channel_id: home, reason: "off" });
  const next = left.candidates.find(({ order }) => order === 1)?.id;
  const served = await g.charged(() => ask(session));
  expect([served.channelId, next]).not.toContain(home);
  expect(served.channelId).toBe(next ?? 0);
});

describe("why not the others", () => {
  test("turn, priority, group, off, too long, another endpoint, and keys", async () => {
    const model = `route-${++serial}`;
    const first = await channel(model, "first", { priority: 9 });
    const second = await channel(model, "second", { priority: 9 });
    const behind = await channel(model, "behind", { priority: 1 });
    const others = await channel(model, "others", { group: "vip" });
    const off = await channel(model, "off", { status: 2 });
    const short = await channel(model, "short", { priority: 9, maxInputTokens: 100 });
    const report = await route(model, { tokens: 500 });
    expect(verdicts(report)).toEqual({
      [first]: "chosen",
      [second]: "turn",
      [behind]: "priority",
      [others]: "group",
      [off]: "off",
      [short]: "too_long",
    });
    expect(report.candidates.map(({ order }) => order)).toEqual([1, 2, 3, 0, 0, 0]);
    expect(verdicts(await route(model, { group: "vip" }))[others]).toBe("chosen");
    // The shortest prompt fits, and no other channel's turn comes before its own.
    expect(verdicts(await route(model, { tokens: 50 }))[short]).toBe("turn");
  });

  test("what rests, until when; a key that rests and one that is off; full", async () => {
    const model = `route-${++serial}`;
    const pair = await channel(model, "p1\np2\np3", { priority: 9 });
    const lone = await channel(model, "lone", { priority: 5 });
    const capped = await channel(model, "capped", { priority: 3, rpmLimit: 1 });
    const last = await channel(model, "last");
    await g.app.call(
      "POST",
      "/api/channel/multi_key/manage",
      { channel_id: pair, action: "disable_key", key_index: 2 },
      root,
    );
    const troubled: Record<string, Script> = {
      p1: refuseUntil(90),
      p2: refuseUntil(60),
      lone: refuseUntil(30),
    };
    g.upstream.always(({ headers }) => troubled[String(headers["authorization"]).slice(7)] ?? answer("ok"));
    await g.setOption("RetryTimes", "5");
    expect(await call(model)).toBe(200);
    await g.setOption("RetryTimes", "2");
    const report = await route(model);
    const at = (seconds: number): number => Math.ceil(clock.nowMs() / 1000) + seconds;
    const told = Object.fromEntries(
      report.candidates.map(({ id, verdict, until }) => [id, [verdict, until]]),
    );
    expect(told).toEqual({
      [pair]: ["keys_resting", at(60)],
      [lone]: ["resting", at(30)],
      [capped]: ["full", 0],
      [last]: ["chosen", 0],
    });
    expect(
      report.candidates.find(({ id }) => id === pair)?.keys.map(({ verdict, until }) => [verdict, until]),
    ).toEqual([
      ["resting", at(90)],
      ["resting", at(60)],
      ["off", 0],
    ]);
  });

  test("calls that would be refused say so: nobody has the model, a key that may not use it, nobody for that endpoint", async () => {
    const model = `route-${++serial}`;
    expect((await route(model)).refused).toMatchObject({ status: 404, code: "model_not_found" });
    await channel(model, "chat only", { type: 14 });
    const { id } = await g.app.createToken(g.user.id, { modelLimitsEnabled: true, modelLimits: "another" });
    expect((await route(model, { token_id: id })).refused).toMatchObject({ code: "token_model_forbidden" });
    expect((await route(model, { token_id: 0 })).refused).toBeNull();
    expect((await route(model, { path: "/v1/rerank" })).candidates[0]?.verdict).toBe("endpoint");
  });

  test("administrators alone may ask, and of no other's keys", async () => {
    const model = `route-${++serial}`;
    const body = { user_id: g.user.id, model };
    const { status } = await g.app.call("POST", "/api/channel/route", body, g.user);
    expect(status).not.toBe(200);
    const other = await g.app.createUser();
    const { id } = await g.app.createToken(other.id);
    const foreign = await g.app.call<{ code?: string }>(
      "POST",
      "/api/channel/route",
      { ...body, token_id: id },
      root,
    );
    expect(foreign.body.code).toBe("record_missing");
  });
});
