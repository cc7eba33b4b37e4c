// A quiet site, as an import leaves one: no letter, notice or look at anybody else goes out by itself until root ends
// maintenance mode; then what waited goes, once. A real SMTP server, on both databases.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { isQuiet } from "../../../src/core/options/quiet.ts";
import { IMPORTED_SITE } from "../../../src/core/site/maintenance.ts";
import { holdSetup } from "../../../src/core/site/setup.ts";
import { createVersionCheck } from "../../../src/core/site/version-check.ts";
import { deliver, deliverKept } from "../../../src/core/users/notify.ts";
import { sendDue } from "../../../src/core/users/outbox.ts";
import { jobsOf } from "../../../src/jobs/jobs.ts";
import { Role } from "../../../src/shared/enums.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp, TestUser } from "../../support/app.ts";
import { startMailServer } from "../../support/mail-server.ts";
import type { MailServerStand } from "../../support/mail-server.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";

/** Every job, by whether it asks or tells somebody elsewhere. A new one is put in its place here. */
const LEAVING = [
  "channel-balance",
  "channel-test",
  "key-probe",
  "outbox",
  "payment-check",
  "price-sync",
  "task-poll",
  "upstream-models",
  "warm-probe",
];
const STAYING = [
  "auth-flow-purge",
  "coarse-sums",
  "erasure",
  "inbox-audit",
  "inbox-purge",
  "log-parts",
  "log-retention",
  "model-days-purge",
  "plan-allocation",
  "plan-periods",
  "price-schedule",
  "remote-object-purge",
  "session-purge",
  "user-bulk",
  "user-bulk-purge",
];
const NOTICE = { type: "quota_exceed", title: "Low", content: "It is." };
const HOOK = { notify_type: "webhook", webhook_url: "https://hooks.example/in" } as const;

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let app: TestApp;
  let mail: MailServerStand;
  let root: TestUser;
  let hooks = 0;

  beforeAll(async () => {
    mail = await startMailServer();
    app = await startTestApp({ database });
    root = await app.createUser({ username: "root", role: Role.root });
    app.deps.guard = () => {
      hooks += 1;
      return Promise.resolve({ status: 200, headers: new Headers(), bytes: new Uint8Array() });
    };
    const smtp = { SMTPServer: "127.0.0.1", SMTPPort: String(mail.port), SMTPFrom: "site@mail.example" };
    const on = {
      ServerAddress: "https://gw.example",
      "relay.channel_test_minutes": "5",
      "relay.channel_balance_minutes": "5",
      "relay.probe_max_quota_per_day": "1000",
      "site.version_check_url": "https://code.example/latest",
      "site.version_check_enabled": "true",
      PriceSources: JSON.stringify([{ name: "lists", source: "litellm", auto: true }]),
    };
    const rows = { ...smtp, ...on, ...IMPORTED_SITE };
    for (const [key, value] of Object.entries(rows)) await app.deps.options.set(key, value);
  });
  afterAll(async () => {
    await app.close();
    await mail.close();
  });

  const running = (): string[] =>
    jobsOf(app.deps, app.services.gateway.watch, () => Promise.resolve(), { logRetentionDays: 30 })
      .filter((job) => job.everySeconds() > 0)
      .map(({ name }) => name)
      .toSorted();
  const kept = async () => (await app.deps.db.orm.select().from(app.deps.db.t.outbox)).length;
  const user = { id: 7, email: "ada@mail.example", role: Role.user };

  test("nothing that asks elsewhere comes round; what stays in the house does", () => {
    expect(running()).toEqual(STAYING);
  });

  test("while a site is moved in nothing comes round at all", () => {
    const release = holdSetup(app.deps.db);
    expect(running()).toEqual([]);
    release();
    expect(running()).toEqual(STAYING);
  });

  test("a letter is kept and does not go, however often it is looked for", async () => {
    await deliverKept(app.deps, user, {}, NOTICE);
    expect([await sendDue(app.deps), await kept(), mail.letters.length]).toEqual([0, 1, 0]);
    const { outbox } = app.deps.db.t;
    expect(await app.deps.db.orm.select({ attempts: outbox.attempts }).from(outbox)).toEqual([
      { attempts: 0 },
    ]);
  });

  test("a webhook is refused, as are codes and links by letter; the version is not looked for", async () => {
    const sent = deliverKept(app.deps, user, HOOK, NOTICE);
    expect(await sent.catch((error: unknown) => (error as { code: string }).code)).toBe("maintenance");
    for (const path of ["verification", "reset_password"]) {
      const answer = await app.call("GET", `/api/${path}?email=ada@mail.example`);
      expect([path, answer.status, answer.body["code"]]).toEqual([path, 503, "maintenance"]);
    }
    expect(createVersionCheck(app.deps).state().checkedAt).toBe(0);
    expect([hooks, mail.letters.length]).toEqual([0, 0]);
  });

  test("what somebody asks for goes: root's own test of a webhook", async () => {
    await deliver(app.deps, user, HOOK, NOTICE);
    expect(hooks).toBe(1);
  });

  test("root is told on every page, and asked again before it ends", async () => {
    const page = async (as: TestUser) =>
      (await fetch(`${app.url}/token`, { headers: { ...as.headers, "accept-language": "en" } })).text();
    const html = await page(root);
    expect(html).toContain("no email, notice or channel test leaves the site");
    expect(html).toContain('data-send="DELETE /api/maintenance"');
    expect(html).toContain("Emails that wait go out at once");
  });

  test("root alone ends it, and then what waited goes once", async () => {
    const admin = await app.createUser({ role: Role.admin });
    const end = (as?: TestUser) => app.call("DELETE", "/api/maintenance", undefined, as);
    expect([(await end()).status, (await end(admin)).status]).toEqual([401, 503]);
    expect(isQuiet(app.deps.options)).toBe(true);
    expect((await end(root)).body).toMatchObject({ success: true });
    expect([isQuiet(app.deps.options), app.deps.maintenance.isOn]).toEqual([false, false]);
    expect((await end(admin)).status).toBe(403);
    expect(running()).toEqual([...LEAVING, ...STAYING].toSorted());
    expect([await sendDue(app.deps), await sendDue(app.deps), await kept()]).toEqual([1, 0, 0]);
    expect(mail.letters.map(({ to }) => to)).toEqual([["ada@mail.example"]]);
    await deliverKept(app.deps, user, HOOK, NOTICE);
    expect(hooks).toBe(2);
    // The next maintenance is an ordinary one: letters go.
    await app.deps.options.set("site.maintenance_enabled", "true");
    await deliverKept(app.deps, user, {}, NOTICE);
    expect(mail.letters).toHaveLength(2);
  });
});
