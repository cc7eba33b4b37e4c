// `weir export`, `plan` and `apply` as programs run them: on a data directory and against a running server, on both databases.
// Exit codes, what is printed, and that what is refused changes nothing.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startOperator } from "../support/operator.ts";
import type { Operator } from "../support/operator.ts";
import { createTestDatabase, DATABASE_KINDS } from "../support/postgres.ts";
import type { TestDatabase } from "../support/postgres.ts";
import { program, startServerProcess } from "../support/server.ts";
import type { ServerProcess } from "../support/server.ts";

interface Ran {
  code: number;
  out: string;
  err: string;
}

/** A running server is asked the same way whatever its database is: on PostgreSQL it is left to the long run. */
const PLACES = (kind: (typeof DATABASE_KINDS)[number]) =>
  kind === "sqlite" || Bun.env["WEIR_LONG"] === "1"
    ? (["data directory", "server"] as const)
    : (["data directory"] as const);

const DIRECTORY = mkdtempSync(join(tmpdir(), "weir-config-"));
afterAll(() => rmSync(DIRECTORY, { recursive: true, force: true }));

/** The variables that the files below name. */
const SECRETS = {
  MAIN_KEY: "sk-main-3f9a",
  SPARE_KEY: "sk-spare-77aa\nsk-spare-78bb",
  MAIL_TOKEN: "mail-token-91c",
  PAY_KEY: "pay-key-44e",
  PROXY_PASSWORD: "p@ss:w/rd-5d",
};

/** Runs the program; the site is what `env` says it is. */
function weir(env: Record<string, string>, args: string[], input = ""): Ran {
  const ended = Bun.spawnSync([...program(), ...args], {
    cwd: DIRECTORY,
    env: { ...Bun.env, LOG_LEVEL: "info", GLOBAL_API_RATE_LIMIT_ENABLE: "false", ...env },
    stdin: Buffer.from(input),
  });
  return { code: ended.exitCode, out: ended.stdout.toString(), err: ended.stderr.toString() };
}

function file(name: string, text: string): string {
  writeFileSync(join(DIRECTORY, name), text);
  return name;
}

interface Report {
  format: number;
  status: string;
  revision: number | null;
  plan_hash: string;
  changes: {
    section: string;
    name: string;
    field: string;
    action: string;
    before: unknown;
    after: unknown;
  }[];
  guards: { code: string; name: string; message: string; blocking: boolean }[];
  removals: { name: string; calls: number }[];
  problems: { file: string; line: number; path: string[]; code: string; message: string }[];
}

const report = ({ out }: Ran): Report => JSON.parse(out) as Report;

const DESIRED = `format: 1
options:
  SystemName: Ours
  RetryTimes: 2
  SMTPToken: \${MAIL_TOKEN}
  EpayKey: \${PAY_KEY}
  Notice: |-
    Two lines: here
      # and no comment
groups:
  gold: {ratio: 0.5, usable: Gold, topup: 0.9}
prices:
  gpt-4o: {in: 2.5, out: 12, cache_read: 1.25}
  house-model:
    in: 0.3
    out: 0.7
    tools: {web_search: 10}
    when:
      - {over: 200000, set: {in: 0.6, out: 1.4}}
      - {hours: ["22:00-06:00"], tz: Asia/Shanghai, times: 0.5}
  house-picture: {call: 0.04, unit: image}
channels:
  main:
    type: 1
    base_url: http://127.0.0.1:9
    models: [gpt-4o, house-model]
    group: [default, gold]
    model_mapping: {house-model: gpt-4o}
    setting: {proxy: "http://user:\${PROXY_PASSWORD}@127.0.0.1:9"}
    key: \${MAIN_KEY}
  spare:
    type: 14
    status: disabled
    models: [claude-sonnet-4-5]
    priority: 5
    key: \${SPARE_KEY}
`;

/** No secret may be told by anything that is printed. */
function expectNoSecret(...texts: string[]): void {
  for (const secret of Object.values(SECRETS).flatMap((each) => each.split("\n")))
    for (const text of texts) {
      expect(text).not.toContain(secret);
      expect(text).not.toContain(encodeURIComponent(secret));
    }
}

for (const kind of DATABASE_KINDS) {
  describe.each(PLACES(kind))(`on ${kind}, %s`, (place) => {
    let database: TestDatabase;
    let server: ServerProcess;
    let operator: Operator;
    /** What a program needs to reach the site, without secrets. */
    let site: Record<string, string>;
    let full: Record<string, string>;

    beforeAll(async () => {
      database = await createTestDatabase(kind);
      const settings = { DATABASE_URL: database.databaseUrl ?? "" };
      server = await startServerProcess(settings, { dataDir: database.dataDir });
      operator = await startOperator(server, { base_url: "http://127.0.0.1:9", models: "gpt-4o-mini" });
      const token = String(await operator.send("GET", "/api/user/token"));
      if (place === "server") site = { WEIR_URL: server.url, WEIR_TOKEN: token };
      else {
        await server.stop();
        site = { ...settings, DATA_DIR: server.dataDir };
      }
      full = { ...site, ...SECRETS };
    });
    afterAll(async () => {
      await server.remove();
      await database.drop();
    });

    const desired = file("desired.yaml", DESIRED);

    test("what is exported is no difference, as YAML and as JSON, and equal each time", () => {
      const first = weir(site, ["export"]);
      expect(first).toMatchObject({ code: 0, err: "" });
      expect(weir(site, ["export"]).out).toBe(first.out);
      expect(weir(site, ["plan", "-"], first.out)).toMatchObject({
        code: 0,
        out: "Nothing to do: the site is as the file says.\n",
      });
      const json = weir(site, ["export", "--json"]);
      expect(Object.keys(JSON.parse(json.out) as object)).toEqual(
        expect.arrayContaining(["format", "options", "groups", "prices", "channels"]),
      );
      expect(weir(site, ["plan", "-", "--json"], json.out).code).toBe(0);
      // Also where all else is to go: nothing is left out but what is secret.
      expect(weir(site, ["plan", "-"], `prune: true\n${first.out}`).code).toBe(0);
    });

    test("a variable that is not set is named with its line, and nothing changes", () => {
      const before = weir(site, ["export"]).out;
      const ran = weir({ ...site, ...SECRETS, MAIN_KEY: " " }, ["apply", desired]);
      expect(ran).toMatchObject({ code: 1, out: "" });
      expect(ran.err).toContain(
        "desired.yaml:30: channels.main.key: The environment variable MAIN_KEY is not set",
      );
      expect(weir(site, ["export"]).out).toBe(before);
    });

    test("plan (3), apply (0), apply again (0), plan (0), and the export says the same", () => {
      const before = weir(site, ["export"]).out;
      const planned = weir(full, ["plan", desired]);
      expect(planned).toMatchObject({ code: 3, err: "" });
      for (const line of [
        "  ~ SystemName Weir → Ours",
        "  + SMTPToken (secret) is set",
        "  + EpayKey (secret) is set",
        "  + gold",
        "      ratio: 0.5",
        "      out: $10 → $12",
        "      in: $0.3",
        "      call: $0.04",
        "      key: (secret) is set",
        "      status: disabled",
      ])
        expect(planned.out).toContain(`${line}\n`);
      expect(weir(site, ["export"]).out).toBe(before);
      const plan = report(weir(full, ["plan", desired, "--json"]));
      expect(planned.out).toContain(`plan ${plan.plan_hash}\n`);
      const applied = weir(full, ["apply", desired, "--plan", plan.plan_hash]);
      expect(applied).toMatchObject({ code: 0, err: "" });
      expect(applied.out).toEndWith("\nApplied.\n");
      const again = weir(full, ["apply", desired]);
      expect(again).toMatchObject({ code: 0, out: "Nothing to do: the site is as the file says.\n" });
      expect(weir(full, ["apply", desired, "--plan", plan.plan_hash]).code).toBe(0);
      expect(weir(full, ["plan", desired]).code).toBe(0);
      const exported = weir(site, ["export"]);
      expect(exported.out).toContain("  gpt-4o: {in: 2.5, out: 12, cache_read: 1.25}\n");
      expect(exported.out).toContain("# SMTPToken: ${SMTP_TOKEN}");
      expect(exported.out).toContain("# key: ${CHANNEL_MAIN_KEY}");
      expect(weir(site, ["plan", "-"], exported.out).code).toBe(0);
      expect(weir(site, ["plan", "-"], `prune: true\n${exported.out}`).code).toBe(0);
      expectNoSecret(planned.out, applied.out, again.out, exported.out, JSON.stringify(plan));
    });

    test("a plan that is another one by now is refused, and nothing changes", () => {
      const small = file(
        "small.yaml",
        "format: 1\nprices:\n  gpt-4o: {in: 2.5, out: 13, cache_read: 1.25}\n",
      );
      const { plan_hash: stale } = report(weir(site, ["plan", small, "--json"]));
      file("between.yaml", "format: 1\nprices:\n  other-model: {in: 1, out: 1}\n");
      expect(weir(site, ["apply", "between.yaml", "--note", "in between"]).code).toBe(0);
      const refused = weir(site, ["apply", small, "--plan", stale]);
      expect(refused.code).toBe(1);
      expect(refused.out).toContain("the plan is another one by now");
      expect(report(weir(site, ["plan", small, "--json"])).changes).toHaveLength(1);
      expect(report(weir(site, ["apply", small, "--plan", stale, "--json"])).status).toBe("mismatch");
      const { plan_hash: fresh } = report(weir(site, ["plan", small, "--json"]));
      expect(fresh).not.toBe(stale);
      expect(weir(site, ["apply", small, "--plan", fresh]).code).toBe(0);
    });

    test("a guard ends with 4 until it is accepted; one that nobody can accept stays", () => {
      const dear = file(
        "dear.yaml",
        "format: 1\nprices:\n  house-model: {in: 3, out: 0.7}\n  gpt-4o: {in: 0, out: 0}\n",
      );
      const planned = weir(site, ["plan", dear]);
      expect(planned.code).toBe(4);
      expect(planned.out).toContain(
        "guard: house-model: a price more than doubles (to be accepted with --accept-guards)",
      );
      const before = weir(site, ["export"]).out;
      const refused = weir(site, ["apply", dear, "--json"]);
      expect(refused.code).toBe(4);
      expect(report(refused)).toMatchObject({ status: "guarded" });
      expect(report(refused).guards.map(({ code, name, blocking }) => [code, name, blocking])).toEqual([
        ["config_price_doubled", "house-model", false],
        ["config_price_halved", "gpt-4o", false],
        ["config_price_free", "gpt-4o", false],
        ["config_price_outlier", "gpt-4o", false],
      ]);
      expect(weir(site, ["export"]).out).toBe(before);
      expect(weir(site, ["plan", dear, "--accept-guards"]).code).toBe(3);
      expect(weir(site, ["apply", dear, "--accept-guards"]).code).toBe(0);
      const half = file(
        "half.yaml",
        "format: 1\noptions: {TelegramOAuthEnabled: true, TelegramBotName: bot}\n",
      );
      const halfset = weir(site, ["apply", half, "--accept-guards"]);
      expect([halfset.code, halfset.out]).toEqual([4, expect.stringContaining("(cannot be accepted)")]);
      expect(weir(site, ["plan", half]).code).toBe(4);
    });

    test("prune takes what the file does not name, and only in its sections", () => {
      const keep = file(
        "keep.yaml",
        "format: 1\nprune: [channels]\nchannels:\n  main: {type: 1, base_url: 'http://127.0.0.1:9', models: [gpt-4o]}\n",
      );
      const planned = report(weir(site, ["plan", keep, "--json"]));
      const gone = planned.changes.filter(({ action }) => action === "remove").map(({ name }) => name);
      expect([...new Set(gone)]).toEqual(["fake", "spare"]);
      expect(weir(site, ["apply", keep]).code).toBe(0);
      const exported = JSON.parse(weir(site, ["export", "--json"]).out) as Record<
        string,
        Record<string, unknown>
      >;
      expect(exported["channels"]).toEqual({
        main: { type: 1, base_url: "http://127.0.0.1:9", models: ["gpt-4o"] },
      });
      expect(Object.keys(exported["prices"] ?? {}).length).toBeGreaterThan(500);
      const empty = weir(site, ["apply", "-"], "format: 1\nprune: true\nprices: {}\n");
      expect([empty.code, empty.out]).toEqual([4, expect.stringContaining("guard: All of prices would go")]);
    });

    test("the server goes on with what was applied, and the history says by whom and why", async () => {
      if (place === "data directory") {
        await server.restart();
        await server.stop();
        expect(server.audit().code).toBe(0);
        return;
      }
      const { items } = (await operator.send("GET", "/api/price/revisions?p=1&page_size=50")) as {
        items: { kind: string; username: string; note: string; names: string[] }[];
      };
      const notes = items
        .filter(({ kind: how }) => how === "cli")
        .map(({ note, username }) => [username, note]);
      expect(notes.toReversed()).toEqual([
        ["root", "weir apply desired.yaml"],
        ["root", "in between"],
        ["root", "weir apply small.yaml"],
        ["root", "weir apply dear.yaml"],
      ]);
      const { data } = (await (await fetch(`${server.url}/api/status`)).json()) as {
        data: { system_name: string };
      };
      expect(data.system_name).toBe("Ours");
      expect(server.log()).not.toContain('"level":"error"');
      expectNoSecret(server.log());
    });
  });
}

describe("what is refused", () => {
  let server: ServerProcess;
  let site: Record<string, string>;
  let before: string;

  beforeAll(async () => {
    server = await startServerProcess();
    await server.stop();
    site = { DATA_DIR: server.dataDir, ...SECRETS };
    before = weir(site, ["export"]).out;
  });
  afterAll(() => server.remove());

  const CHANNEL = "    type: 1\n    models: [m]\n";

  test.each<[what: string, text: string, said: string]>([
    [
      "an unknown section",
      "format: 1\nprice: {}\n",
      ":2: price: price is not known here. Known: format, prune, options,",
    ],
    ["another format", "format: 2\n", ":1: format: `format` must be 1"],
    ["no format", "prices: {}\n", ": format: `format` must be 1"],
    [
      "an unknown option",
      "format: 1\noptions:\n  SystemNme: x\n",
      ":3: options.SystemNme: SystemNme is not known here. Known: SystemName,",
    ],
    [
      "an option of another section",
      "format: 1\noptions:\n  ModelRatio: {}\n",
      ":3: options.ModelRatio: ModelRatio stands in the section prices",
    ],
    [
      "an option of another kind",
      "format: 1\noptions:\n  RetryTimes: true\n",
      ":3: options.RetryTimes: A number should stand here",
    ],
    [
      "a number for text",
      "format: 1\noptions:\n  SystemName: 1.10\n",
      ":3: options.SystemName: Text should stand here",
    ],
    ["an option out of bounds", "format: 1\noptions:\n  RetryTimes: 11\n", ":3: options.RetryTimes: "],
    [
      "a secret option in plain text",
      "format: 1\noptions:\n  EpayKey: secret\n",
      ":3: options.EpayKey: EpayKey is secret: write ${NAME}",
    ],
    [
      "an unknown field of a price",
      "format: 1\nprices:\n  m:\n    in: 1\n    output: 2\n",
      ":5: prices.m.output: output is not known here. Known: call, unit, in, out,",
    ],
    [
      "an unknown field of an entry",
      "format: 1\nprices:\n  m:\n    in: 1\n    when:\n      - {above: 2, times: 2}\n",
      ":6: prices.m.when.0.above: above is not known here. Known: over,",
    ],
    [
      "a negative price",
      "format: 1\nprices:\n  m: {in: -1}\n",
      ":3: prices.m.in: The value of in is not taken",
    ],
    ["a price without a base", "format: 1\nprices:\n  m: {out: 1}\n", ":3: prices.m: A price needs `in`"],
    [
      "a price of both kinds",
      "format: 1\nprices:\n  m: {in: 1, call: 1}\n",
      ":3: prices.m: A price is per call or per token",
    ],
    ["a ratio below 0", "format: 1\ngroups:\n  g: {ratio: -1}\n", ":3: groups.g.ratio: "],
    [
      "an unknown field of a group",
      "format: 1\ngroups:\n  g: {rate: 1}\n",
      ":3: groups.g.rate: rate is not known here. Known: ratio, usable, topup",
    ],
    [
      "a literal key",
      `format: 1\nchannels:\n  c:\n${CHANNEL}    key: sk-literal\n`,
      ":6: channels.c.key: key is secret: write ${NAME}",
    ],
    [
      "a key that is more than a variable",
      `format: 1\nchannels:\n  c:\n${CHANNEL}    key: sk-\${MAIN_KEY}\n`,
      ":6: channels.c.key: key is secret",
    ],
    [
      "a new channel without a key",
      `format: 1\nchannels:\n  c:\n${CHANNEL}`,
      ":3: channels.c: A new channel needs a key",
    ],
    [
      "a channel without models",
      "format: 1\nchannels:\n  c: {type: 1, key: '${MAIN_KEY}'}\n",
      ":3: channels.c: The field models is missing",
    ],
    [
      "an unknown field of a channel",
      `format: 1\nchannels:\n  c:\n${CHANNEL}    url: x\n    key: \${MAIN_KEY}\n`,
      ":6: channels.c.url: url is not known here. Known: key, type,",
    ],
    [
      "a provider that is none",
      "format: 1\nchannels:\n  c: {type: 9999, models: [m], key: '${MAIN_KEY}'}\n",
      ":3: channels.c.type: ",
    ],
    [
      "a proxy's password in plain text",
      `format: 1\nchannels:\n  c:\n${CHANNEL}    setting: {proxy: 'http://u:pw@h:1'}\n    key: \${MAIN_KEY}\n`,
      ":6: channels.c.setting.proxy: proxy is secret",
    ],
    [
      "a masked password of nobody",
      `format: 1\nchannels:\n  c:\n${CHANNEL}    base_url: 'http://u:***@h:1'\n    key: \${MAIN_KEY}\n`,
      ":6: channels.c.base_url: *** stands for the secret",
    ],
    [
      "a plan that lasts so many of nothing",
      "format: 1\nplans:\n  Pro: {quota: 5, duration_unit: moon, wallet_price: 5}\n",
      ":3: plans.Pro.duration_unit: ",
    ],
    [
      "pruning what is not there",
      "format: 1\nprune: [prices]\nchannels: {}\n",
      ":2: prune: `prune` is true, false, or a list of sections of this file: channels",
    ],
    ["a section without anything", "format: 1\nprices:\n", ":2: prices: Names with values should stand here"],
    ["a list for the file", "- 1\n", ": "],
    ["a name twice", "format: 1\nprices:\n  m: {in: 1}\n  m: {in: 2}\n", ':4: "m" stands in line 3 already'],
    ["an octal number", "format: 1\nprices:\n  m: {in: 012}\n", ":3: 012 looks octal"],
  ])("%s: 1, with its line, and nothing changes", (_, text, said) => {
    const name = file("wrong.yaml", text);
    const applied = weir(site, ["apply", name, "--json", "--accept-guards"]);
    const { status, changes, problems } = report(applied);
    expect([applied.code, status, changes]).toEqual([1, "invalid", []]);
    const told = problems.map(({ file: where, line, path, message }) =>
      [`${where}${line === 0 ? "" : `:${line}`}`, ...(path.length > 0 ? [path.join(".")] : []), message].join(
        ": ",
      ),
    );
    expect(told.join("\n")).toContain(`wrong.yaml${said}`);
  });

  test("nothing of all that was written", () => {
    const mixed = file("mixed.yaml", "format: 1\noptions: {SystemName: Theirs}\nprices:\n  m: {in: -1}\n");
    const applied = weir(site, ["apply", mixed]);
    expect([applied.code, applied.out]).toEqual([1, ""]);
    expect(applied.err).toContain("mixed.yaml:4: prices.m.in: The value of in is not taken");
    expect(weir(site, ["export"]).out).toBe(before);
  });

  test.each<[args: string[], said: string]>([
    [["plan"], "plan takes one FILE"],
    [["apply", "a", "b"], "apply takes one FILE"],
    [["export", "a"], "export takes no file"],
    [["plan", "a", "--prune"], "--prune"],
    [["plan", "a", "--plan", "x"], "--plan"],
    [["apply", "a", "--plan", "x"], "no hash of a plan"],
    [["export", "--url", "http://127.0.0.1:9"], "belong together"],
    [["export", "--url", "127.0.0.1", "--token", "x"], "no address of a server"],
    [["export", "--url", "http://h", "--token", "x", "--user", "me"], "no number of a user"],
  ])("usage: %j ends with 2", (args, said) => {
    const ran = weir(site, args);
    expect([ran.code, ran.out]).toEqual([2, ""]);
    expect(ran.err).toContain(said);
    expect(ran.err).toContain("usage: weir export");
  });

  test("a file that is not there, a directory without a site, a server that is none: 1 with one sentence", () => {
    for (const [env, args, said] of [
      [site, ["plan", "none.yaml"], "none.yaml cannot be read"],
      [{ DATA_DIR: join(DIRECTORY, "none"), DATABASE_URL: "" }, ["export"], "there is no site in"],
      [{ WEIR_URL: "http://127.0.0.1:9", WEIR_TOKEN: "x" }, ["export"], "http://127.0.0.1:9 does not answer"],
    ] as const) {
      const ran = weir(env, [...args]);
      expect([ran.code, ran.out]).toEqual([1, ""]);
      expect(ran.err).toContain(said);
      expect(ran.err.trim().split("\n")).toHaveLength(1);
    }
  });

  test("a directory that a server holds, and a token that is not root's", async () => {
    await server.restart();
    const held = weir(site, ["apply", "-"], "format: 1\n");
    expect([held.code, held.out]).toEqual([1, ""]);
    expect(held.err).toBe(
      `weir apply: a server holds the data directory ${server.dataDir}: name it by --url and --token, or stop it first\n`,
    );
    const wrong = weir({}, ["export", "--url", server.url, "--token", "wrong"]);
    expect([wrong.code, wrong.out]).toEqual([1, ""]);
    expect(wrong.err).toContain(`${server.url} refused: `);
    await server.stop();
  });
});
