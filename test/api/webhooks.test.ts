// Addresses of webhooks: https anywhere public; http inside what UPSTREAM_NETWORKS opens, and closed networks, for administrators
// alone, whose channels may lie there too. What anybody else names in http is refused without a look at where it lies.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { deliver } from "../../src/core/users/notify.ts";
import { Failure } from "../../src/shared/failures.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

interface Told {
  success: boolean;
  code?: string;
  field?: string;
  message: string;
}

const NAMES: Record<string, string[]> = {
  "public.example": ["93.184.216.34"],
  "inside.example": ["127.0.0.1"],
  "both.example": ["127.0.0.1", "93.184.216.34"],
  "lan.example": ["10.1.2.3"],
};
const lookedUp: string[] = [];
const lookup = (name: string) => {
  lookedUp.push(name);
  return NAMES[name] === undefined ? Promise.reject(new Error("ENOTFOUND")) : Promise.resolve(NAMES[name]);
};

const NETWORKS = ["", "none", "10.1.0.0/16", "loopback,93.184.216.34"] as const;
/** Addresses by which UPSTREAM_NETWORKS lets http pass; "" is the default, this machine and the private ranges. */
const OPEN: [string, (typeof NETWORKS)[number][]][] = [
  ["https://public.example/hook", [...NETWORKS]],
  ["https://127.0.0.1/hook", [...NETWORKS]],
  ["http://public.example/hook", ["loopback,93.184.216.34"]],
  ["http://93.184.216.34/hook", ["loopback,93.184.216.34"]],
  ["http://127.0.0.1:9/hook", ["", "loopback,93.184.216.34"]],
  ["http://[::1]:9/hook", ["", "loopback,93.184.216.34"]],
  ["HTTP://inside.example/hook", ["", "loopback,93.184.216.34"]],
  ["http://both.example/hook", ["loopback,93.184.216.34"]],
  ["http://lan.example/hook", ["", "10.1.0.0/16"]],
  ["http://10.1.9.9/hook", ["", "10.1.0.0/16"]],
  ["http://169.254.169.254/latest", []],
  ["http://nobody.example/hook", []],
];

const isSecure = (url: string) => url.startsWith("https:");

const hook = (url: string) => ({ notify_type: "webhook", quota_warning_threshold: 5, webhook_url: url });

describe.each(NETWORKS)("with UPSTREAM_NETWORKS %j", (networks) => {
  let app: TestApp;
  let user: TestUser;
  let root: TestUser;
  beforeAll(async () => {
    app = await startTestApp({ lookup, env: networks === "" ? {} : { UPSTREAM_NETWORKS: networks } });
    user = await app.createUser();
    root = await app.createUser({ role: 100 });
  });
  afterAll(() => app.close());

  test.each(OPEN)("%s is saved, or refused with a sentence and nothing stored", async (url, opened) => {
    for (const who of [user, root]) {
      const isOpen = who === user ? isSecure(url) : opened.includes(networks);
      lookedUp.length = 0;
      await app.call("PUT", "/api/user/setting", { notify_type: "email", quota_warning_threshold: 1 }, who);
      const { status, body } = await app.call<Told>("PUT", "/api/user/setting", hook(url), who);
      expect([status, body.success]).toEqual([200, isOpen]);
      if (!isOpen) expect(body).toMatchObject({ code: "webhook_insecure", field: "webhook_url" });
      const stored = (await app.deps.accounts.user(who.id))?.setting;
      expect(stored?.webhook_url).toBe(isOpen ? url : undefined);
      if (who === user) expect(lookedUp).toEqual([]);
    }
  });

  test("an address that was stored before is judged again before anything is sent", async () => {
    const asked: string[] = [];
    const deps = {
      ...app.deps,
      guard: (url: string) => {
        asked.push(url);
        return Promise.reject(new Failure("client", "address_unreachable"));
      },
    };
    const notice = { type: "t", title: "t", content: "c" };
    const cases = OPEN.flatMap(([url, opened]) =>
      [1, 100].map((role) => [url, role, role === 1 ? isSecure(url) : opened.includes(networks)] as const),
    );
    for (const [url, role, isOpen] of cases) {
      asked.length = 0;
      const setting = { notify_type: "webhook" as const, webhook_url: url };
      const failed = await deliver(deps, { email: "", role }, setting, notice).catch(
        (error: unknown) => error,
      );
      expect([url, role, (failed as Failure).code]).toEqual([
        url,
        role,
        isOpen ? "address_unreachable" : "webhook_insecure",
      ]);
      expect([url, role, asked.includes(url)]).toEqual([url, role, isOpen]);
    }
  });
});

describe.each(DATABASE_KINDS)("a receiver inside on %s", (database) => {
  let app: TestApp;
  let received: string[] = [];
  let receiver: ReturnType<typeof Bun.serve>;
  beforeAll(async () => {
    app = await startTestApp({ database, lookup });
    receiver = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      async fetch(request) {
        received.push(await request.text());
        return new Response("");
      },
    });
  });
  afterAll(async () => {
    await receiver.stop(true);
    await app.close();
  });

  test("gets an administrator's notices; what an ordinary user names stays closed", async () => {
    for (const host of ["127.0.0.1", "inside.example"])
      for (const [role, isTold] of [
        [1, false],
        [10, true],
        [100, true],
      ] as const) {
        received = [];
        const who = await app.createUser({ role });
        const url = `http://${host}:${receiver.port}/hook`;
        const { body } = await app.call<Told>("POST", "/api/user/setting/test", hook(url), who);
        expect([host, role, body.success, received.length]).toEqual([host, role, isTold, isTold ? 1 : 0]);
        if (!isTold) expect(body.code).toBe("webhook_insecure");
        const secure = hook(url.replace("http:", "https:"));
        const guarded = await app.call<Told>("POST", "/api/user/setting/test", secure, who);
        expect([role, guarded.body.code === "address_refused"]).toEqual([role, !isTold]);
      }
  });

  test("says in both languages what is wrong with http", async () => {
    const who = await app.createUser();
    for (const [language, words] of [
      ["zh", "https://"],
      ["en", "starts with https://"],
    ] as const) {
      const headers = { ...who.headers, "accept-language": language };
      const { body } = await app.call<Told>("PUT", "/api/user/setting", hook("http://public.example"), {
        ...who,
        headers,
      });
      expect(body.message).toContain(words);
    }
  });
});
