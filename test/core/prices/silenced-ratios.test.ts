// At the upgrade that lets operators' completion ratios win, no price moves by itself; afterwards what they say stands.
import { expect, test } from "bun:test";
import { eq, like } from "drizzle-orm";
import { dropSilencedRatios } from "../../../src/core/prices/silenced-ratios.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { startTestApp } from "../../support/app.ts";

const quiet = { warn: () => {} };

test.each(DATABASE_KINDS)(
  "on %s: entries that a lock had silenced are dropped, once and never again",
  async (kind) => {
    const app = await startTestApp({ database: kind });
    const { db } = app.deps;
    const { options } = db.t;
    // As an earlier version left it.
    await db.orm.delete(options).where(like(options.key, "internal:completion%"));
    const read = async () =>
      JSON.parse(
        (await db.orm.select().from(options).where(eq(options.key, "CompletionRatio")))[0]?.value ?? "null",
      ) as unknown;
    const listed = { "gpt-4o-mini-tts": 20, "gpt-4o": 4, "mine/gpt-4o": 9, "qwen-plus": 3, "gpt-4": 7 };
    await db.orm.insert(options).values({ key: "CompletionRatio", value: JSON.stringify(listed) });
    // Several nodes may start at once.
    const done = await Promise.all([1, 2, 3].map(() => dropSilencedRatios(db, quiet)));
    expect(done.flat()).toEqual(["gpt-4o-mini-tts"]);
    expect(await read()).toEqual({ "gpt-4o": 4, "mine/gpt-4o": 9, "qwen-plus": 3, "gpt-4": 7 });
    // From here on an operator's word is kept, whatever the family.
    await db.orm
      .update(options)
      .set({ value: JSON.stringify(listed) })
      .where(eq(options.key, "CompletionRatio"));
    expect(await dropSilencedRatios(db, quiet)).toEqual([]);
    expect(await read()).toEqual(listed);
    await app.close();
  },
);
