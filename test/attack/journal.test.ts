// B3 and B4 from outside: a killed server's journal, damaged at many places, and databases that fell back to an older day.
// Refuses silence: a start either has every answered call that is still legible, or is refused by name and changes nothing.
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import postgres from "postgres";
import { openBooks } from "../support/books.ts";
import { damages, sampleOf } from "../support/journal-damage.ts";
import type { Damage, DamagedFile } from "../support/journal-damage.ts";
import { lockFile } from "../support/lock-file.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { program, startServerProcess } from "../support/server.ts";
import type { ServerProcess } from "../support/server.ts";
import { IS_LONG, longCalls, startSite } from "./site.ts";
import type { Site } from "./site.ts";

/** Beside every whole file's fate. Each place is a start of the program and two looks at its books. */
const PLACES = IS_LONG ? 4000 : 12;
/** Processes at once. */
const LANES = 2;
/** A start neither serves nor is refused: that is a hang. */
const START_LIMIT_MS = 30_000;
const KEYS = { ENCRYPTION_KEY: "one key for all nodes", SESSION_SECRET: "one secret for all nodes" };
const JOURNAL = /^journal-\d+\.log$/;
/** The same damages again: WEIR_SEED. */
const SEED = Number(Bun.env["WEIR_SEED"] ?? 12);

function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** The positions and calls of every whole frame in some bytes, read by the documented form of a frame. */
function legible(files: readonly DamagedFile[]): Map<number, string> {
  const found = new Map<number, string>();
  const header = /weir\d ((?:[0-9a-f]{16} )?)(\d{1,16}) (\d{1,9}) (\d{1,10}) ([0-9a-f]{1,8})\n/g;
  for (const { bytes } of files) {
    const text = bytes.toString("latin1");
    for (const match of text.matchAll(header)) {
      const [first, count, length] = [Number(match[2]), Number(match[3]), Number(match[4])];
      const begin = match.index + match[0].length;
      const body = bytes.subarray(begin, begin + length);
      const said = `${match[1] ?? ""}${first} ${count}`;
      if (body.length < length || crc32(body, crc32(said)).toString(16) !== match[5]) continue;
      const items = JSON.parse(body.toString()) as unknown[];
      for (const [index, item] of items.entries())
        found.set(first + index, /"requestId":"(\w+)"/.exec(JSON.stringify(item))?.[1] ?? "");
    }
  }
  return found;
}

const journalOf = (dataDir: string): DamagedFile[] =>
  readdirSync(dataDir)
    .filter((name) => JOURNAL.test(name))
    .sort()
    .map((name) => ({ name, bytes: readFileSync(join(dataDir, name)) }));

/** What the books say of the node's journal: the last position they have, and the last that was journaled for sure. */
function booksOf(dataDir: string): { mark: number; journaled: number } {
  const file = new Database(join(dataDir, "weir.sqlite"), { readonly: true });
  try {
    return file.query("select mark, journaled from nodes").get() as { mark: number; journaled: number };
  } finally {
    file.close();
  }
}

describe("a killed server's journal", () => {
  let site: Site;
  let snapshot = "";
  let answered: string[] = [];
  const scratch: string[] = [];
  beforeAll(async () => {
    site = await startSite();
    const person = await site.person(1_000_000_000);
    const key = await person.key();
    // Some that the books have, then some that only the journal has.
    answered = await longCalls(site, key, 40);
    await site.root.send("GET", "/api/log/?p=1&page_size=1");
    const lock = lockFile(join(site.server.dataDir, "weir.sqlite"));
    answered.push(...(await longCalls(site, key, 800)));
    await site.server.kill();
    lock.release();
    snapshot = mkdtempSync(join(tmpdir(), "weir-snapshot-"));
    cpSync(site.server.dataDir, snapshot, { recursive: true });
  }, 60_000);
  afterAll(async () => {
    await site.remove();
    for (const dir of [snapshot, ...scratch]) rmSync(dir, { recursive: true, force: true });
  });

  const copy = (files: readonly DamagedFile[]): string => {
    const dir = mkdtempSync(join(tmpdir(), "weir-damaged-"));
    scratch.push(dir);
    cpSync(snapshot, dir, { recursive: true });
    for (const { name } of journalOf(dir)) rmSync(join(dir, name));
    for (const { name, bytes } of files) writeFileSync(join(dir, name), bytes);
    return dir;
  };
  /** Starts on a directory; the server, or what the refusal said. */
  const start = async (dataDir: string): Promise<{ server?: ServerProcess; refusal: string }> => {
    try {
      const server = await startServerProcess(KEYS, { dataDir, startLimitMs: START_LIMIT_MS });
      return { server, refusal: "" };
    } catch (error) {
      return { refusal: String(error) };
    }
  };
  const recorded = async (dataDir: string): Promise<string[]> => {
    const books = openBooks({ dataDir });
    return (await books.log(2)).map(({ requestId }) => requestId);
  };

  /** What is wrong with a start on these files; undefined when all is as it must be. */
  async function verdict(label: string, files: readonly DamagedFile[]): Promise<string | undefined> {
    const dataDir = copy(files);
    const { mark, journaled } = booksOf(dataDir);
    const whole = legible(files);
    let last = mark;
    while (whole.has(last + 1)) last++;
    const isHole = [...whole.keys()].some((position) => position > last);
    const mustRefuse = isHole || last < journaled;
    const { server, refusal } = await start(dataDir);
    let wrong: string | undefined;
    if (server) {
      await server.stop();
      const rows = await recorded(dataDir);
      const known = new Set(rows);
      const missing = [...whole].filter(([position, id]) => position > mark && id !== "" && !known.has(id));
      const { code } = server.audit();
      if (mustRefuse) wrong = `started over a hole behind ${last}, ${missing.length} legible calls lost`;
      else if (missing.length > 0) wrong = `${missing.length} legible calls lost`;
      else if (known.size !== rows.length) wrong = "calls were entered twice";
      else if (code !== 0) wrong = "audit finds differences";
    } else if (!mustRefuse) wrong = `refused although nothing is missing: ${refusal.slice(-1200)}`;
    else if (!refusal.includes("weir journal"))
      wrong = `refused without the way out: ${refusal.slice(-1200)}`;
    else if (!/journal-\d+\.log|\d+/.test(refusal)) wrong = "refused without naming a place";
    else if (
      journalOf(dataDir).some(
        ({ name, bytes }) => !files.find((each) => each.name === name)?.bytes.equals(bytes),
      )
    )
      wrong = "a refused start changed the journal";
    rmSync(dataDir, { recursive: true, force: true });
    return wrong === undefined ? undefined : `${label}: ${wrong}`;
  }

  test("undamaged, it gives every answered call to the books, once", async () => {
    const files = journalOf(snapshot);
    expect(files.length).toBeGreaterThanOrEqual(3);
    expect(booksOf(snapshot).mark).toBeGreaterThanOrEqual(1);
    expect(await verdict("undamaged", files)).toBeUndefined();
    const dataDir = copy(files);
    const { server } = await start(dataDir);
    await server?.stop();
    const known = new Set(await recorded(dataDir));
    expect(answered.filter((id) => !known.has(id)).length).toBe(0);
  }, 60_000);

  test(`damaged at ${PLACES} places, no legible call is lost and no sound start is refused (seed ${SEED})`, async () => {
    const files = journalOf(snapshot);
    const random = randomOf(SEED);
    // What happens to whole files is tried in any case, but for most of their swaps; of the places within them a sample.
    const chosen: Damage[] = [];
    const isOfSample = (label: string) =>
      / \d/.test(label) || (!IS_LONG && label.startsWith("swap ") && !label.includes(` ${files[0]?.name} `));
    const places = function* () {
      for (const damage of damages(files, random)) {
        if (isOfSample(damage.label)) yield damage;
        else chosen.push(damage);
      }
    };
    chosen.push(...sampleOf(places(), PLACES, random));
    const wrong: string[] = [];
    let next = 0;
    const lane = async () => {
      for (let number = next++; number < chosen.length; number = next++) {
        const damage = chosen[number];
        if (!damage) return;
        const found = await verdict(damage.label, damage.files);
        if (found !== undefined) wrong.push(found);
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    console.log(`${chosen.length} damages, ${wrong.length} wrong`);
    expect(wrong.slice(0, 20)).toEqual([]);
  }, 1_200_000);

  test("a refused journal is told about, and each way out works", async () => {
    const files = journalOf(snapshot);
    const whole = legible(files);
    // The file in the middle of those that the books still need.
    const { mark } = booksOf(snapshot);
    const needed = files.filter((file) => [...legible([file]).keys()].some((position) => position > mark));
    const lost = needed[1];
    if (!lost) throw new Error("the journal has too few files");
    const rest = files.filter(({ name }) => name !== lost.name);
    const gone = new Set(legible([lost]).values());

    const entering = copy(rest);
    const refused = await start(entering);
    expect(refused.server).toBeUndefined();
    expect(refused.refusal).toContain("weir journal");
    const first = await startRun(entering, "journal", "check");
    expect(first.code).toBe(1);
    expect((await startRun(entering, "journal", "show")).text.length).toBeGreaterThan(0);
    const aside = join(entering, "found-again.bin");
    writeFileSync(aside, lost.bytes);
    expect(await startRun(entering, "journal", "enter", aside)).toMatchObject({ code: 0 });
    expect(await startRun(entering, "journal", "check")).toMatchObject({ code: 0 });
    const entered = await start(entering);
    expect(entered.refusal).toBe("");
    await entered.server?.stop();
    const all = new Set(await recorded(entering));
    expect([...whole.values()].filter((id) => !all.has(id)).length).toBe(0);
    expect((await startRun(entering, "audit")).code).toBe(0);

    const skipping = copy(rest);
    const positions = [...legible([lost]).keys()].filter((position) => position > mark);
    const range = `${Math.min(...positions)}-${Math.max(...positions)}`;
    expect(await startRun(skipping, "journal", "skip", range)).toMatchObject({ code: 0 });
    const skipped = await start(skipping);
    expect(skipped.refusal).toBe("");
    await skipped.server?.stop();
    const others = new Set(await recorded(skipping));
    expect(
      [...whole].filter(([position, id]) => position > mark && !gone.has(id) && !others.has(id)).length,
    ).toBe(0);
    expect((await startRun(skipping, "audit")).code).toBe(0);
  }, 120_000);
});

/** A subcommand on a directory whose server is stopped. */
async function startRun(dataDir: string, ...args: string[]): Promise<{ code: number; text: string }> {
  const child = Bun.spawn([...program(), ...args], {
    cwd: dataDir,
    env: { ...Bun.env, ...KEYS, DATA_DIR: dataDir, DATABASE_URL: "" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, text: out + err };
}

describe.each(DATABASE_KINDS)("a database that fell back to an older state, on %s", (kind) => {
  test("what was answered since is entered again from kept files; without them the start is refused by name", async () => {
    const site = await startSite({ kind });
    const person = await site.person(10_000_000);
    const key = await person.key();
    const before = await longCalls(site, key, 30);
    await site.server.stop();
    const older = await backUp(site);
    await site.server.restart();
    // More than the room that was used over and over: what the books had got must have been kept.
    const since = await longCalls(site, key, 900);
    await site.server.stop();
    const journal = journalOf(site.server.dataDir);

    const databaseUrl = await older.restore();
    const env = { ...KEYS, DATABASE_URL: databaseUrl };
    const replayed = await startServerProcess(env, {
      dataDir: site.server.dataDir,
      startLimitMs: START_LIMIT_MS,
    });
    await replayed.stop();
    const books = openBooks({ dataDir: site.server.dataDir, databaseUrl: databaseUrl || undefined });
    const rows = (await books.log(2)).map(({ requestId }) => requestId);
    await books.close();
    const known = new Set(rows);
    expect([...before, ...since].filter((id) => !known.has(id)).length).toBe(0);
    expect(known.size).toBe(rows.length);
    expect(replayed.audit()).toMatchObject({ code: 0 });

    // Again, with nothing but the newest file: between it and the books there is a hole.
    const again = await older.restore();
    const newest = (file: DamagedFile) => Math.max(0, ...legible([file]).keys());
    const kept = journal.toSorted((a, b) => newest(b) - newest(a))[0];
    for (const { name } of journalOf(site.server.dataDir)) rmSync(join(site.server.dataDir, name));
    if (kept) writeFileSync(join(site.server.dataDir, kept.name), kept.bytes);
    const outcome = await startServerProcess(
      { ...KEYS, DATABASE_URL: again },
      { dataDir: site.server.dataDir, startLimitMs: START_LIMIT_MS },
    ).then(
      async (server) => {
        await server.kill();
        return "it started over a hole";
      },
      (error: unknown) => String(error),
    );
    expect(outcome).toContain("weir journal");
    await older.drop();
    await site.remove();
  }, 120_000);
});

/** A copy of a stopped server's database; restore() puts it into force and gives the address that leads to it. */
async function backUp(site: Site): Promise<{ restore(): Promise<string>; drop(): Promise<void> }> {
  const { databaseUrl, server } = site;
  if (!databaseUrl) {
    const names = () => readdirSync(server.dataDir).filter((name) => name.startsWith("weir.sqlite"));
    const kept = names().map((name) => ({ name, bytes: readFileSync(join(server.dataDir, name)) }));
    return {
      async restore() {
        for (const name of names()) rmSync(join(server.dataDir, name));
        for (const { name, bytes } of kept) writeFileSync(join(server.dataDir, name), bytes);
        return "";
      },
      async drop() {},
    };
  }
  const url = new URL(databaseUrl);
  const name = url.pathname.slice(1);
  const made: string[] = [];
  const admin = async (statement: string) => {
    const home = new URL(databaseUrl);
    home.pathname = "/postgres";
    const sql = postgres(home.toString(), { max: 1, onnotice: () => {} });
    await sql.unsafe(statement);
    await sql.end();
  };
  await site.books.close();
  await admin(`create database ${name}_old template ${name}`);
  return {
    async restore() {
      const next = `${name}_${made.push(name)}`;
      await admin(`create database ${next} template ${name}_old`);
      const back = new URL(databaseUrl);
      back.pathname = `/${next}`;
      return back.toString();
    },
    async drop() {
      for (const each of [`${name}_old`, ...made.map((_, index) => `${name}_${index + 1}`)])
        await admin(`drop database if exists ${each} with (force)`);
    },
  };
}
