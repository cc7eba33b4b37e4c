// The site's settings and prices: written first, because orders, plans and passkeys are read by them.
// Refuses to write half of them: all options and the history of prices are one transaction.
import { createOptions } from "../../core/options/store.ts";
import { SEEN_KEY } from "../../core/prices/origins.ts";
import { priceRecorder } from "../../core/prices/revisions.ts";
import { q } from "../../db/database.ts";
import type { Database, Orm, Steps } from "../../db/database.ts";
import { namesOf } from "../../core/channels/input.ts";
import { PRICE_MAPS } from "../../shared/row-maps.ts";
import type { ImportContext } from "../context.ts";
import { insertRows, rowsFor } from "../insert.ts";
import { mapOptions } from "../mapping/options.ts";
import type { OptionValueWrite } from "../mapping/options.ts";
import { mapPrices } from "../mapping/prices.ts";
import type { MappedPrices } from "../mapping/prices.ts";
import { textOf } from "../values.ts";
import { moveMark, readMark } from "../state.ts";
import type { SiteFacts } from "./accounts.ts";

const DEFAULT_QUOTA_PER_UNIT = 500_000;
/** What the first start then takes for the table that the site has seen: it adds names that are new to it. */
const SEEN = "import";
const STEP = "settings";

/** Options of the source, those of the operator's file where its table has none. */
async function textsOf({ source, settings, notes }: ImportContext): Promise<Map<string, string>> {
  const texts = new Map(settings.optionTexts ?? []);
  for (const row of await source.all("options")) {
    notes.read("options");
    texts.set(textOf(row, "key"), textOf(row, "value"));
  }
  return texts;
}

/** Models that a channel has, whatever its state. */
async function servedModels({ source }: ImportContext): Promise<Set<string>> {
  const served = new Set<string>();
  for await (const page of source.pages("channels", { columns: ["id", "models"] }))
    for (const row of page) for (const model of namesOf(textOf(row, "models"))) served.add(model);
  return served;
}

function hostOf(address: string): string {
  return URL.parse(address)?.hostname ?? "";
}

export async function importSettings(context: ImportContext): Promise<SiteFacts> {
  const { notes, family, now, seal, target } = context;
  const texts = await textsOf(context);
  const options = mapOptions(texts, notes);
  const textFor = (key: string): string => options.find((each) => each.key === key)?.text ?? "";
  const quotaPerUnit = Number(textFor("QuotaPerUnit")) || DEFAULT_QUOTA_PER_UNIT;
  const served = await servedModels(context);
  const prices = mapPrices(texts, { family, notes, now, quotaPerUnit, served });
  const { db } = target;
  if (db) await writeSettings({ db, seal, now }, options, prices);
  const ownHost = hostOf(textFor("ServerAddress"));
  return {
    quotaPerUnit,
    zone: textFor("site.time_zone") || "UTC",
    passkeyHost: { own: ownHost, old: (texts.get("passkey.rp_id") ?? "").trim() || ownHost },
  };
}

async function writeSettings(
  { db, seal, now }: { db: Database; now: number } & Pick<ImportContext, "seal">,
  options: readonly OptionValueWrite[],
  { maps, origins }: MappedPrices,
): Promise<void> {
  const store = await createOptions(db, seal);
  store.recordWith(priceRecorder({ db, clock: { nowMs: () => now * 1000, monotonicMs: () => 0 } }));
  const writes = [...options, ...PRICE_MAPS.map((key) => ({ key, text: JSON.stringify(maps[key]) }))];
  // They are written anew by each run; two at once must not.
  const from = await readMark(db, STEP);
  await store.write(
    function* (tx) {
      yield* moveMark(db, tx, STEP, { from, to: from + 1 });
      yield* replaceOrigins(db, tx, origins);
      return { writes, value: undefined };
    },
    { userId: 0, username: "", kind: "import", note: "import" },
  );
}

function* replaceOrigins(db: Database, tx: Orm, origins: MappedPrices["origins"]): Steps<void> {
  const { options, priceOrigins } = db.t;
  yield* q(tx.delete(priceOrigins).returning({ name: priceOrigins.name }));
  yield* insertRows(db, tx, rowsFor("priceOrigins", origins));
  yield* q(
    tx
      .insert(options)
      .values({ key: SEEN_KEY, value: SEEN })
      .onConflictDoUpdate({ target: options.key, set: { value: SEEN } })
      .returning({ key: options.key }),
  );
}
