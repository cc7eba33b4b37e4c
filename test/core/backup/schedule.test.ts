// Backups by themselves: when they are due, on one node, what the inbox hears, and which copies stay.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newManifest, bundleName, readManifest, writeManifest } from "../../../src/core/backup/manifest.ts";
import { startLooks } from "../../../src/core/inbox/looks.ts";
import { refusalText } from "../../../src/core/backup/refusal.ts";
import { removeSuperfluous, superfluous } from "../../../src/core/backup/retention.ts";
import { createBackups, lastDue } from "../../../src/core/backup/schedule.ts";
import { noteBackup } from "../../../src/core/backup/state.ts";
import { jobsOf } from "../../../src/jobs/jobs.ts";
import { translator } from "../../../src/pages/texts.ts";
import { inboxSentence } from "../../../src/shared/inbox.ts";
import { startServerProcess } from "../../support/server.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp } from "../../support/app.ts";
import { testClock } from "../../support/clock.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { until } from "../../relay/support.ts";

const HOUR_MS = 3_600_000;
const DAY = 86_400;
const at = (text: string): number => Date.parse(text) / 1000;
const dayText = (seconds: number): string => new Date(seconds * 1000).toISOString().slice(0, 10);

test("one is due at its hour by the site's clock, also on days of 23 and 25 hours", () => {
  const due = (now: string, zone: string) => new Date(lastDue(at(now), 210, zone) * 1000).toISOString();
  expect(due("2026-11-27T03:29:59Z", "UTC")).toBe("2026-11-26T03:30:00.000Z");
  expect(due("2026-11-27T03:30:00Z", "UTC")).toBe("2026-11-27T03:30:00.000Z");
  expect(due("2026-11-27T12:00:00Z", "Asia/Shanghai")).toBe("2026-11-26T19:30:00.000Z");
  // Berlin's clock goes forward at two on 29 March 2026, and back at three on 25 October.
  expect(due("2026-03-29T12:00:00Z", "Europe/Berlin")).toBe("2026-03-29T01:30:00.000Z");
  expect(due("2026-10-25T12:00:00Z", "Europe/Berlin")).toBe("2026-10-25T02:30:00.000Z");
});

test("seven days, four weeks and six months stay, counted from the newest", () => {
  const newest = at("2026-11-27T03:30:00Z");
  const copies = Array.from({ length: 400 }, (_, day) => ({
    name: dayText(newest - day * DAY),
    createdAt: newest - day * DAY,
  }));
  const goes = new Set(superfluous(copies, "UTC"));
  expect(copies.map(({ name }) => name).filter((name) => !goes.has(name))).toEqual([
    "2026-11-27",
    "2026-11-26",
    "2026-11-25",
    "2026-11-24",
    "2026-11-23",
    "2026-11-22",
    "2026-11-21",
    // Sundays of the weeks before, the first of which is a day already; last days of months.
    "2026-11-15",
    "2026-11-08",
    "2026-10-31",
    "2026-09-30",
    "2026-08-31",
    "2026-07-31",
    "2026-06-30",
  ]);
  // Several of one day: the newest. None goes where there are few.
  const twice = [newest, newest - 60].map((createdAt) => ({ name: String(createdAt), createdAt }));
  expect(superfluous(twice, "UTC")).toEqual([String(newest - 60)]);
  expect(superfluous(copies.slice(0, 7), "UTC")).toEqual([]);
});

test("only copies of the own installation go: others', unreadable and unfinished ones are left alone", () => {
  const dir = mkdtempSync(join(tmpdir(), "weir-kept-"));
  const newest = at("2026-11-27T03:30:00Z");
  const put = (createdAt: number, installation: number) => {
    const path = join(dir, bundleName(createdAt));
    mkdirSync(path);
    writeManifest(
      path,
      newManifest({
        weir: "0.1.0",
        createdAt,
        installation,
        database: { kind: "sqlite", file: "weir.sqlite", bytes: 0, sha256: "" },
        schema: { version: 1, hash: "" },
        nodes: [],
        counts: { users: 0, tokens: 0, channels: 0, logs: 0, credits: 0 },
        newestLogAt: 0,
        key: { fingerprint: "" },
        findings: [],
      }),
    );
    expect(readManifest(path).installation).toBe(installation);
    return bundleName(createdAt);
  };
  const kept = [put(newest, 1), put(newest - 120, 2)];
  const gone = put(newest - 60, 1);
  const broken = put(newest - 180, 1);
  rmSync(join(dir, broken, "manifest.json"));
  expect(removeSuperfluous(dir, 1, "UTC")).toBe(1);
  expect([readdirSync(dir).sort(), existsSync(join(dir, gone))]).toEqual([[...kept, broken].sort(), false]);
  rmSync(dir, { recursive: true, force: true });
});

describe.each(DATABASE_KINDS)("on %s", (database) => {
  const clock = testClock();
  let app: TestApp;
  let runs = 0;
  let report: string | Error = "";
  const plan = {
    atMinutes: 210,
    async run() {
      runs++;
      if (report instanceof Error) throw report;
      if (!report.includes("refused")) await noteBackup(app.deps.db, Math.floor(clock.nowMs() / 1000), 4096);
      return report;
    },
  };

  beforeAll(async () => {
    app = await startTestApp({ database, clock, looks: { makesBackups: true } });
  });
  afterAll(() => app.close());

  const said = async (): Promise<string[]> => {
    await app.services.looks.look();
    const { inboxItems } = app.deps.db.t;
    const rows = await app.deps.db.orm.select().from(inboxItems);
    return rows
      .filter(({ kind, closedAt }) => kind.startsWith("backup") && closedAt === 0)
      .flatMap(({ kind, subject, params }) =>
        (["en", "zh"] as const).map((language) =>
          inboxSentence(translator(language), language, {
            kind: kind as "backup_late",
            subject,
            params: JSON.parse(params) as Record<string, string>,
          }),
        ),
      );
  };

  /** As another node does. */
  async function lookElsewhere(node: { makesBackups: boolean; startedAt: number }): Promise<void> {
    const looks = startLooks({
      ...app.deps,
      ...node,
      inbox: app.services.inbox,
      condition: () => ({ canRecord: true, lost: 0, silentMs: 0, stoppedBy: undefined }),
    });
    await looks.look();
    await looks.stop();
  }

  test("none since a node began is told of by it, and not taken back by one that began later or makes none", async () => {
    const now = Math.floor(clock.nowMs() / 1000);
    await lookElsewhere({ makesBackups: true, startedAt: now - 30 * 3600 });
    const told = await said();
    expect(told[0]).toContain("No backup has been completed for 30 hours");
    await lookElsewhere({ makesBackups: true, startedAt: now });
    await lookElsewhere({ makesBackups: false, startedAt: now });
    expect(await said()).toEqual(told);
  });

  test("the first at once, then one a day on one of two nodes; a failure is told, tried again after an hour, and over", async () => {
    const nodes = [createBackups(app.deps, plan), createBackups(app.deps, plan)];
    const look = async () => {
      const before = runs;
      for (const node of nodes) await node.makeDue();
      return runs - before;
    };
    report = '{"ok":true}';
    expect([await look(), await look(), await said()]).toEqual([1, 0, []]);
    // Both at the same moment.
    clock.advance(24 * HOUR_MS);
    const before = runs;
    await Promise.all(nodes.map((node) => node.makeDue()));
    expect(runs - before).toBe(1);

    clock.advance(24 * HOUR_MS);
    const params = { path: "/backups", free: "10 MiB", needed: "2458 MiB" };
    report = JSON.stringify({ ok: false, refused: { code: "no_space", params } });
    expect(await look()).toBe(1);
    const reasons = (["en", "zh"] as const).map((language) =>
      refusalText({ code: "no_space", params }, language),
    );
    expect(await said()).toEqual([
      `The automatic backup did not go well: ${reasons[0]}. It is tried again after an hour, and this item closes once one succeeds.`,
      `自动备份没有正常完成：${reasons[1]}。一小时后会重试，成功后此项自动关闭。`,
    ]);
    clock.advance(HOUR_MS / 2);
    expect(await look()).toBe(0);
    clock.advance(HOUR_MS / 2);
    // It dies without a word.
    report = new Error("Killed");
    expect(await look()).toBe(1);
    expect((await said())[0]).toContain("the backup ended before it was whole: Killed");
    // None came for more than a day: that is told, too.
    clock.advance(3 * HOUR_MS);
    expect(
      (await said()).filter((text) => text.includes("No backup has been completed for 28 hours")),
    ).toHaveLength(1);
    // A node that makes none knows no better.
    await lookElsewhere({ makesBackups: false, startedAt: 0 });
    expect(await said()).toHaveLength(4);
    report = '{"ok":true}';
    expect([await look(), await said()]).toEqual([1, []]);
  });

  test("a whole copy of books that are wrong counts as one, and the finding is told", async () => {
    clock.advance(24 * HOUR_MS);
    const backups = createBackups(app.deps, plan);
    report = JSON.stringify({ ok: false, findings: [{ code: "found_audit", params: { count: 3 } }] });
    await backups.makeDue();
    expect([(await said())[0], await said()]).toEqual([
      expect.stringContaining("3 sums in it do not agree: run weir audit"),
      expect.arrayContaining([expect.stringContaining("3 处账目不一致")]),
    ]);
    await noteBackup(app.deps.db, Math.floor(clock.nowMs() / 1000), 4096);
    expect(await said()).toEqual([]);
  });

  test("the job comes round where a place is set, and nowhere else", () => {
    const every = (backups?: ReturnType<typeof createBackups>) =>
      jobsOf(app.deps, app.services.gateway.watch, () => Promise.resolve(), { backups })
        .find(({ name }) => name === "backup")
        ?.everySeconds();
    expect([every(createBackups(app.deps, plan)), every()]).toEqual([60, 0]);
  });
});

// A minute passes before a new job's first turn.
if (Bun.env["WEIR_LONG"] === "1")
  test("a server with BACKUP_DIR makes its first copy by itself, and its stop is none the longer", async () => {
    const dir = mkdtempSync(join(tmpdir(), "weir-scheduled-"));
    const server = await startServerProcess({ BACKUP_DIR: dir });
    try {
      const whole = () => readdirSync(dir).filter((name) => name.endsWith("Z"));
      await until(async () => whole()[0]);
      expect(readManifest(join(dir, whole()[0] ?? "")).database.bytes).toBeGreaterThan(0);
      expect(await server.stop()).toBe(0);
    } finally {
      await server.remove();
      rmSync(dir, { recursive: true, force: true });
    }
  }, 180_000);
