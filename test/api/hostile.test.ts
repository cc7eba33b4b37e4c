// Hostile values in every field of every console call and in the relay's bodies, on both databases.
// Refuses hand-picked fields: the table is made from the schemas that the routes declare.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createApp } from "../../src/app.ts";
import { audit } from "../../src/core/ledger/audit.ts";
import type { Logger } from "../../src/core/deps.ts";
import { optionDefinitions } from "../../src/core/options/definitions.ts";
import type { TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { HI, MODEL, startGateway } from "../relay/support.ts";
import type { Gateway } from "../relay/support.ts";

/** Beyond two bytes' worth of length and every field's own limit. */
const LONG = "x".repeat(70_000);
const DEEP = "[".repeat(10_000) + "]".repeat(10_000);

/** As JSON text, because some of them cannot be written by JSON.stringify. */
const VALUES: readonly string[] = [
  "-1",
  "0",
  "0.5",
  "1e309",
  "-1e309",
  "1e-400",
  '"NaN"',
  '"Infinity"',
  "9223372036854775808",
  '"9223372036854775808"',
  "9007199254740993",
  `"${LONG}"`,
  `"${"a\\n".repeat(50)}"`,
  '"\\u0000"',
  '"a\\u0000b"',
  '"\\ud800"',
  '"x\\udc00y"',
  '"\\u202Eabc\\u200F"',
  '"👩‍👩‍👧‍👦🙈🙉🙊"',
  '"\' OR 1=1; --"',
  '"%_\\\\"',
  '"../../etc/passwd"',
  '"__proto__"',
  '{"__proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '{"toString":1}',
  "{}",
  "[]",
  "[null]",
  "[1e309,-1,null]",
  DEEP,
  "null",
  "true",
];

const QUERY_VALUES: readonly string[] = [
  "-1",
  "0",
  "1e309",
  "NaN",
  "9223372036854775808",
  "%00",
  "a%00b",
  "%ED%A0%80",
  "%FF%FE",
  "%",
  "%E2%80%AEabc",
  "%F0%9F%99%88",
  "' OR 1=1; --",
  "%25_%5C",
  "__proto__",
  "[object Object]",
  "x".repeat(4_000),
];

/** Consoles of the family read `message` and `data` of these, and expect no `success` (money.md 1, envelope). */
const OLD_PAYMENT_CALLS = new Set([
  "POST /api/user/pay",
  "POST /api/user/amount",
  "POST /api/user/stripe/pay",
  "POST /api/user/stripe/amount",
]);

interface Schema {
  properties?: Record<string, unknown>;
}

interface Route {
  method: string;
  path: string;
  name: string;
  body: string[];
  query: string[];
}

interface Complaint {
  message: string;
  fields: Record<string, unknown> | undefined;
}

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let g: Gateway;
  let routes: Route[];
  let root: TestUser;
  let victim: TestUser;
  let tokenId: number;
  let channelId: number;
  let self: TestUser | undefined;
  let complaints: Complaint[] = [];
  /** Attempts are limited per minute: the clock runs ahead of them. */
  let aheadMs = 0;

  beforeAll(async () => {
    const logger: Logger = {
      debug: () => {},
      info: () => {},
      warn: () => {},
      error: (message, fields) => void complaints.push({ message, fields }),
    };
    g = await startGateway({
      database,
      logger,
      clock: { monotonicMs: () => performance.now() + aheadMs, nowMs: () => Date.now() },
    });
    root = await g.app.createUser({ role: 100, quota: 5_000_000 });
    victim = await g.app.createUser({ quota: 777 });
    tokenId = (await g.app.createToken(root.id, { remainQuota: 1000 })).id;
    channelId = await g.app.createChannel({ models: "nobody-asks" });
    await g.app.call("POST", "/api/setup", {});
    const fieldsOf = (schema: unknown) => Object.keys((schema as Schema | undefined)?.properties ?? {});
    routes = (await createApp(g.app.services)).routes
      .filter((route) => route.path.startsWith("/api"))
      .map(({ method, path, hooks }) => {
        const { body, query } = hooks as { body?: unknown; query?: unknown };
        return { method, path, name: `${method} ${path}`, body: fieldsOf(body), query: fieldsOf(query) };
      });
  });
  afterAll(() => g.close());
  beforeEach(() => {
    complaints = [];
    g.upstream.reset();
  });

  const isLong = Bun.env["WEIR_LONG"] === "1";

  /**
   * Every pair of call and value is sent in every run: a third of them to PostgreSQL, another third for each call, the rest to
   * SQLite. What a value becomes in a database hangs on the value, and each meets both by many calls. The long run sends all
   * to both.
   */
  const metBy = (values: readonly string[], turn: number) =>
    values.filter((_, at) => isLong || ((at + turn) % 3 === 0) === (database === "postgres"));

  /** Of these what one field of a call takes: half of them in turn. The other half meets the fields beside it. */
  const metByField = (values: readonly string[], turn: number, place: number) =>
    metBy(values, turn).filter((_, at) => isLong || at % 2 === place % 2);

  let serial = 0;

  /** What the rest of a body is while one field of it is hostile. */
  function base(name: string): Record<string, unknown> {
    const bodies: Record<string, Record<string, unknown>> = {
      "POST /api/user/login": { username: "nobody", password: "wrong" },
      "POST /api/user/": { username: `u${++serial}`, password: "longenough" },
      "PUT /api/user/": { id: victim.id },
      "POST /api/user/manage": { id: victim.id, action: "enable" },
      "PUT /api/option/": { key: "Footer", value: "" },
      "POST /api/channel/": { type: 1, name: "c", key: "k", models: "nobody-asks" },
      "PUT /api/channel/": { id: channelId },
      "POST /api/channel/batch": { ids: [987_654] },
      "POST /api/channel/batch/tag": { ids: [987_654], tag: "t" },
      "PUT /api/channel/tag": { tag: "no such tag" },
      "POST /api/token/": { name: "k" },
      "PUT /api/token/": { id: tokenId },
    };
    return bodies[name] ?? {};
  }

  function bodyWith(name: string, field: string, value: string): string {
    const rest = Object.entries(base(name)).filter(([key]) => key !== field);
    const members = rest.map(([key, each]) => `${JSON.stringify(key)}:${JSON.stringify(each)}`);
    return `{${[...members, `${JSON.stringify(field)}:${value}`].join(",")}}`;
  }

  async function send(route: Route, path: string, body: string | undefined, type = "application/json") {
    aheadMs += 61_000;
    // Changing the own password ends the session: then another caller takes over.
    if (route.path === "/api/user/self") self ??= await g.app.createUser();
    const actor = route.path === "/api/user/self" && self ? self : root;
    const response = await fetch(g.app.url + path, {
      method: route.method,
      headers: { ...actor.headers, ...(body === undefined ? {} : { "content-type": type }) },
      ...(body === undefined ? {} : { body }),
    });
    const text = await response.text();
    // Lists that leave as files are rows of text; their refusals are answers like all others.
    const isFile = response.headers.get("content-type")?.startsWith("text/csv") === true;
    const json = (isFile ? { success: true, message: "" } : JSON.parse(text)) as {
      success?: boolean;
      message?: string;
    };
    if (actor === self && json.success) self = undefined;
    return { status: response.status, json };
  }

  const short = (text: string) => (text.length > 60 ? `${text.slice(0, 60)}… (${text.length})` : text);

  /** Every answer is one of ours, nothing was logged as an error, and the books are as they were. */
  async function expectUnharmed(): Promise<void> {
    expect(complaints.map(({ message, fields }) => ({ message, fields }))).toEqual([]);
    await g.app.deps.ledger.flush();
    expect((await audit(g.app.deps.db)).differences).toEqual([]);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  }

  test("no field of any console body takes a hostile value to a 500, and no balance moves", async () => {
    const before = await Promise.all([g.balance(root.id), g.balance(victim.id)]);
    const bad: string[] = [];
    let sent = 0;
    for (const [turn, route] of routes.entries()) {
      for (const [place, field] of [...route.body, "__proto__", "unknown"].entries()) {
        if (route.body.length === 0) break;
        for (const value of metByField(VALUES, turn, place)) {
          // Setting a quota to a whole number, or changing it by one, is what the fields are for.
          if (
            route.name === "PUT /api/user/" &&
            ["quota", "quota_change"].includes(field) &&
            [0, -1].includes(Number(value))
          )
            continue;
          const path = route.path.replace(":id", "987654");
          const answer = await send(route, path, bodyWith(route.name, field, value));
          sent++;
          const isOurs =
            typeof answer.json.message === "string" &&
            (typeof answer.json.success === "boolean" || OLD_PAYMENT_CALLS.has(route.name));
          if (answer.status >= 500 || !isOurs)
            bad.push(`${route.name} ${field}=${short(value)}: ${answer.status}`);
        }
      }
    }
    expect(bad).toEqual([]);
    expect(sent).toBeGreaterThan(1500);
    expect(await Promise.all([g.balance(root.id), g.balance(victim.id)])).toEqual(before);
    await expectUnharmed();
  }, 120_000);

  test("no whole body, content type or broken JSON does either", async () => {
    const bodies = [
      ...VALUES,
      `"${"x".repeat(300_000)}"`,
      "",
      "{",
      '{"a":',
      "{broken}",
      "\u0000",
      "\uFEFF{}",
      "NaN",
      "undefined",
      '"\\u12"',
    ];
    const types = [
      "application/json",
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data",
      "x",
    ];
    const bad: string[] = [];
    for (const [turn, route] of routes.filter((each) => each.body.length > 0).entries()) {
      for (const body of metBy(bodies, turn)) {
        const answer = await send(route, route.path, body, types[0]);
        if (answer.status >= 500) bad.push(`${route.name} ${short(body)}: ${answer.status}`);
      }
      for (const type of types.slice(1)) {
        const answer = await send(route, route.path, '{"id":1,"name":"x"}', type);
        if (answer.status >= 500) bad.push(`${route.name} as ${type}: ${answer.status}`);
      }
    }
    expect(bad).toEqual([]);
    await expectUnharmed();
  }, 120_000);

  test("no query field of any console call does either", async () => {
    const bad: string[] = [];
    let sent = 0;
    for (const [turn, route] of routes.entries()) {
      for (const field of route.query) {
        for (const [at, value] of metBy(QUERY_VALUES, turn).entries()) {
          const once = `${route.path.replace(":id", "1")}?${field}=${value}`;
          // Given twice it is a list, whatever stands in it.
          const sends = (at + turn) % 3 === 0 ? [once, `${once}&${field}=${value}`] : [once];
          for (const each of sends) {
            const body = route.body.length > 0 ? bodyWith(route.name, "unknown", "1") : undefined;
            const answer = await send(route, each, body);
            sent++;
            if (answer.status >= 500) bad.push(`${route.name} ${short(each)}: ${answer.status}`);
          }
        }
      }
    }
    expect(bad).toEqual([]);
    expect(sent).toBeGreaterThan(1000);
    await expectUnharmed();
  }, 120_000);

  test("a quota is set exactly or refused, never rounded, and never beyond what can be counted", async () => {
    for (const value of VALUES) {
      const answer = await send(
        routes.find((route) => route.name === "PUT /api/user/") as Route,
        "/api/user/",
        bodyWith("PUT /api/user/", "quota", value),
      );
      const { quota } = await g.balance(victim.id);
      if (answer.json.success) expect([value, String(quota)]).toEqual([value, String(Number(value))]);
    }
    expect((await g.app.call("PUT", "/api/user/", { id: victim.id, quota: 777 }, root)).body).toMatchObject({
      success: true,
    });
    await expectUnharmed();
  });

  test("no option takes a value that breaks the site: refused, or everything still answers", async () => {
    const texts = VALUES.filter((value) => value.startsWith('"')).map((value) => JSON.parse(value) as string);
    const hostile = [...texts, ...VALUES.filter((value) => !value.startsWith('"')), '{"gpt-4o-mini":-1}'];
    hostile.push('{"gpt-4o-mini":1e309}', '{"gpt-4o-mini":"NaN"}', '{"default":-1}', '{"default":[0,0]}', "");
    const bad: string[] = [];
    const keys = Object.keys(optionDefinitions) as (keyof typeof optionDefinitions)[];
    for (const [turn, key] of keys.entries()) {
      for (const value of metBy(hostile, turn)) {
        const answer = await g.app.call("PUT", "/api/option/", { key, value }, root);
        const why = () => JSON.stringify(complaints.at(-1) ?? answer.body);
        if (answer.status >= 500) bad.push(`${key}=${short(value)}: ${answer.status} ${why()}`);
      }
      const stands = await Promise.all(
        ["/api/status", "/api/pricing", "/api/option/", "/login", "/api/user/self"].map(async (path) => {
          return (await g.app.call("GET", path, undefined, root)).status;
        }),
      );
      if (stands.some((status) => status !== 200)) bad.push(`${key}: ${stands.join(" ")}`);
      await g.setOption(key, optionDefinitions[key].default).catch(() => undefined);
    }
    expect(bad).toEqual([]);
    await expectUnharmed();
  }, 120_000);

  test("the relay answers hostile bodies with an error of the caller's dialect or the upstream's answer", async () => {
    const fields = {
      "/v1/chat/completions": [
        "model,messages,stream,stream_options,max_tokens,max_completion_tokens,n,temperature,top_p,stop,seed,user",
        "tools,tool_choice,response_format,logit_bias,metadata,reasoning_effort,web_search_options,modalities",
        "__proto__,unknown",
      ],
      "/v1/completions": ["model,prompt,stream,max_tokens,best_of,suffix,logprobs,__proto__"],
      "/v1/embeddings": ["model,input,encoding_format,dimensions,user,__proto__"],
      "/pg/chat/completions": ["model,messages,group,stream,max_tokens,__proto__"],
    };
    const needed: Record<string, string> = {
      "/v1/completions": '"prompt":"hi"',
      "/v1/embeddings": '"input":"hi"',
    };
    const before = await g.balance();
    const startedRows = (await g.logs()).length;
    const bad: string[] = [];
    let sent = 0;
    for (const [path, lists] of Object.entries(fields)) {
      for (const field of lists.join(",").split(",")) {
        for (const value of VALUES) {
          const rest = [`"model":"${MODEL}"`, needed[path] ?? `"messages":${JSON.stringify(HI)}`];
          const members = rest.filter((member) => !member.startsWith(`"${field}":`));
          const text = `{${[...members, `"${field}":${value}`].join(",")}}`;
          const headers: Record<string, string> = path.startsWith("/pg") ? g.user.headers : {};
          const response = await g.post(path, text, headers);
          const answer = await response.text();
          sent++;
          const isNoChannel = field === "model" || field === "group";
          const isFine = response.status < 500 || (isNoChannel && /"error":/.test(answer));
          const isReadable =
            response.ok ||
            typeof (JSON.parse(answer) as { error?: { message?: unknown } }).error?.message === "string";
          if (!isFine || !isReadable)
            bad.push(`${path} ${field}=${short(value)}: ${response.status} ${short(answer)}`);
        }
      }
    }
    expect(bad).toEqual([]);
    expect(sent).toBeGreaterThan(1000);
    const after = await g.balance();
    const charged = (await g.logs()).slice(startedRows).reduce((sum, row) => sum + row.quota, 0);
    expect(before.quota - after.quota).toBe(charged);
    expect(charged).toBeGreaterThan(0);
    await expectUnharmed();
  }, 120_000);
});
