// weir export --everything, weir import of its file and weir move, as the commands run, without a server: what a killed or
// refused run leaves behind, and that the same command goes on from there.
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exportEverything, importExport, moveCommand } from "../../src/cli/transfer-command.ts";
import type { TransferContext } from "../../src/cli/transfer-command.ts";
import { settleIn } from "../../src/core/ledger/installation.ts";
import { connect } from "../../src/db/connect.ts";

const KEY = "the key of the first site";
const PASSPHRASE = "correct horse battery";

let scratch = "";
let source = "";
let file = "";
let places = 0;

const newPlace = (): string => join(scratch, `place-${++places}`);

type Command = (context: TransferContext, args: readonly string[]) => Promise<number>;

async function run(command: Command, dataDir: string, args: readonly string[]) {
  let text = "";
  let out = "";
  const line = (more: string) => void (text += `${more}\n`);
  const context: TransferContext = {
    dataDir,
    databaseUrl: "",
    encryptionKey: "",
    keyPassphrase: PASSPHRASE,
    version: "test",
    directories: [dataDir],
    write: async (more) => void (out += more),
    say: line,
    tell: line,
  };
  return { code: await command(context, args), text, out };
}

const rowsIn = async (dataDir: string): Promise<string> => {
  const { out } = await run(exportEverything, dataDir, ["--everything"]);
  return out.slice(out.indexOf("\n"));
};

/** A file that differs from the export, for one refusal. */
function changed(change: (text: string) => string): string {
  const path = join(scratch, `changed-${++places}.jsonl`);
  writeFileSync(path, change(readFileSync(file, "utf8")));
  return path;
}

beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), "weir-transfer-command-"));
  source = newPlace();
  const db = await connect({ dataDir: source, databaseUrl: "" });
  await settleIn(db, source, false);
  await db.orm.insert(db.t.users).values({ username: "one", usernameKey: "one" });
  // Another node had four calls more in its journal when the tables were read.
  await db.orm
    .insert(db.t.nodes)
    .values({ nodeId: "0123456789abcdef", history: "h", mark: 5, entered: 5, journaled: 9 });
  await db.close();
  writeFileSync(join(source, "encryption.key"), `${KEY}\n`, { mode: 0o600 });
  const exported = await run(exportEverything, source, ["--everything", "--with-key"]);
  expect([exported.code, exported.text]).toEqual([
    0,
    expect.stringContaining("4 settled calls stand in journals"),
  ]);
  file = join(scratch, "site.jsonl");
  writeFileSync(file, exported.out);
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test("killed before the file has its name, the same import ends, and so does a move; of another site it is refused", async () => {
  const imported = newPlace();
  const moved = newPlace();
  const ways = [
    { into: imported, again: () => run(importExport, imported, [file]) },
    // What the journal of another machine had is not waited for where it never was.
    { into: moved, again: () => run(moveCommand, imported, [moved]) },
  ];
  for (const { into, again } of ways) {
    const [whole, draft] = [join(into, "weir.sqlite"), join(into, "weir.sqlite.moving")];
    expect(await again()).toMatchObject({ code: 0, text: expect.stringContaining("Audit: no difference") });
    renameSync(whole, draft);
    const other = await run(importExport, into, [
      changed((text) => text.replace(/"database":\d+/, '"database":78')),
    ]);
    expect([other.code, other.text]).toEqual([1, expect.stringContaining("another export has begun")]);
    expect(await again()).toMatchObject({ code: 0, text: expect.stringContaining("users 1") });
    expect([existsSync(whole), existsSync(draft)]).toEqual([true, false]);
    expect((await rowsIn(into)) === (await rowsIn(source))).toBe(true);
    const db = await connect({ dataDir: into, databaseUrl: "" });
    await settleIn(db, into, false);
    await db.close();
  }
});

test("the key is there once the site is proved, and a refused import or move leaves none", async () => {
  const cut = changed((text) => text.slice(0, -40));
  const refused: readonly [path: string, says: string][] = [
    [
      changed((text) => text.replace(/"schema":"\w+"/, '"schema":"0000000000000000"')),
      "whose tables are others",
    ],
    [changed((text) => text.replace('"one"', '"two"')), "damaged: users"],
    [cut, "cut off"],
  ];
  const into = newPlace();
  for (const [path, says] of refused) {
    const place = newPlace();
    const { code, text } = await run(importExport, place, [path]);
    expect([code, text]).toEqual([1, expect.stringContaining(says)]);
    expect(readdirSync(place).filter((name) => name.endsWith(".key") || name.endsWith(".draft"))).toEqual([]);
    // Judged by its head it has not even begun.
    if (path === refused[0]?.[0]) expect(readdirSync(place)).toEqual(["process.lock"]);
  }
  // A move into what another site has begun to go into.
  expect((await run(importExport, into, [cut])).code).toBe(1);
  const imported = newPlace();
  expect((await run(importExport, imported, [file])).code).toBe(0);
  const moved = await run(moveCommand, imported, [into]);
  expect([moved.code, moved.text]).toEqual([1, expect.stringContaining("another export has begun")]);
  expect(existsSync(join(into, "encryption.key"))).toBe(false);

  const place = newPlace();
  expect((await run(moveCommand, imported, [place])).code).toBe(0);
  for (const dataDir of [imported, place]) {
    const path = join(dataDir, "encryption.key");
    expect(readFileSync(path, "utf8").trim()).toBe(KEY);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  }
});
