// Every sentence that the log is written in has an English reading: none is forgotten, and none that is foreign is touched.
import { describe, expect, test } from "bun:test";
import { readInEnglish } from "../../../src/core/logs/readings.ts";
import * as sentences from "../../../src/core/logs/sentences.ts";
import { inLanguage } from "../../../src/http/log-texts.ts";
import type { LogJson } from "../../../src/core/logs/list.ts";
import { logQuotaText } from "../../../src/shared/money.ts";

const RATIOS = { modelRatio: 1.25, completionRatio: 4, audioRatio: 16, audioCompletionRatio: 2 };
const FIXED = { ...RATIOS, callPrice: 0.04 };
const channel = { id: 7, name: "备用 A" };
const dollars = logQuotaText(750_000, { inCurrency: true, quotaPerUnit: 500_000 });
const units = logQuotaText(750_000, { inCurrency: false, quotaPerUnit: 500_000 });

/** What each makes of an example, and how that reads. */
const EXAMPLES: Record<
  Exclude<keyof typeof sentences, "auditSentence">,
  readonly (readonly [string, string])[]
> = {
  chargeSentence: [
    [
      sentences.chargeSentence({ ratios: RATIOS, groupRatio: 1 }),
      "Model ratio 1.25, output ratio 4.00, group ratio 1.00",
    ],
    [sentences.chargeSentence({ ratios: FIXED, groupRatio: 2 }), "Price per call 0.04, group ratio 2.00"],
  ],
  spokenChargeSentence: [
    [
      sentences.spokenChargeSentence({ ratios: RATIOS, groupRatio: 1 }),
      "Model ratio 1.25, output ratio 4.00, audio ratio 16.00, audio output ratio 2.00, group ratio 1.00",
    ],
  ],
  registeredBy: [[sentences.registeredBy("GitHub", "ada"), "Registered by the GitHub account ada"]],
  calledModel: [
    [
      sentences.chargeSentence({ ratios: FIXED, groupRatio: 1 }) + sentences.calledModel("gpt-4-gizmo-x"),
      "Price per call 0.04, group ratio 1.00, model gpt-4-gizmo-x",
    ],
  ],
  pictureRemark: [
    [
      `${sentences.chargeSentence({ ratios: FIXED, groupRatio: 1 })}, ${sentences.pictureRemark("1024x1024", "hd")}`,
      "Price per call 0.04, group ratio 1.00, size 1024x1024, quality hd",
    ],
  ],
  taskCharge: [
    [
      sentences.taskCharge({ price: 0.1, groupRatio: 1 }, "IMAGINE"),
      "Fixed price 0.10, group ratio 1.00, action IMAGINE",
    ],
  ],
  drawingFailed: [[sentences.drawingFailed("172"), "Drawing 172 failed"]],
  taskFailed: [[sentences.taskFailed("a-b"), "Task a-b failed"]],
  refunded: [
    [sentences.refunded(sentences.drawingFailed("172"), dollars), "Drawing 172 failed; refunded $1.500000"],
    [sentences.refunded(sentences.taskFailed("t"), units), "Task t failed; refunded 750000 units of quota"],
  ],
  moreErrors: [
    [
      sentences.moreErrors(12, "no route"),
      "12 more errors with the same reason within a minute, not listed one by one: no route",
    ],
  ],
  priceDraftFailed: [
    [
      sentences.priceDraftFailed("秋季", { code: "price_plan_stale", names: "gpt-4o (ModelRatio)" }),
      "Scheduled prices 秋季 not applied: changed since they were scheduled: gpt-4o (ModelRatio)",
    ],
    [
      sentences.priceDraftFailed("#3", { code: "option_bad_ratio", names: "" }),
      "Scheduled prices #3 not applied: an option refuses them (option_bad_ratio)",
    ],
  ],
  CHANNEL_TEST: [[sentences.CHANNEL_TEST, "Channel test"]],
  CHANNEL_PROBE: [[sentences.CHANNEL_PROBE, "Channel probe"]],
  quotaChanged: [
    [
      sentences.quotaChanged(units, dollars),
      "An administrator changed the balance from 750000 units of quota to $1.500000",
    ],
    [
      sentences.quotaChanged(units, dollars, "paid by bank"),
      "An administrator changed the balance from 750000 units of quota to $1.500000: paid by bank",
    ],
  ],
  newUserGift: [[sentences.newUserGift(dollars), "Given to the new account: $1.500000"]],
  inviteeGift: [[sentences.inviteeGift(units), "Given for the invitation code used: 750000 units of quota"]],
  inviterGiftBack: [
    [
      sentences.inviterGiftBack(dollars),
      "The invited user's first order was refunded in full; reward taken back: $1.500000",
    ],
  ],
  inviterGiftAgain: [
    [
      sentences.inviterGiftAgain(dollars),
      "The refund of the invited user's order failed; reward given again: $1.500000",
    ],
  ],
  inviterGift: [[sentences.inviterGift(dollars), "Earned by inviting a user: $1.500000"]],
  orderPaid: [
    [sentences.orderPaid(dollars, "10.95"), "Topped up online: $1.500000, paid 10.95"],
    [sentences.orderPaid(units, "10.95"), "Topped up online: 750000 units of quota, paid 10.95"],
  ],
  planBegun: [[sentences.planBegun("Pro", dollars), "Plan “Pro”: $1.500000 each period"]],
  orderCompleted: [
    [sentences.orderCompleted("USR1NOx", "bank transfer"), "Order USR1NOx completed by hand: bank transfer"],
  ],
  orderTakenBack: [
    [sentences.orderTakenBack(dollars, "USR1NOx", false), "Order USR1NOx refunded; taken back $1.500000"],
    [
      sentences.orderTakenBack(dollars, "USR1NOx", true),
      "Refund of order USR1NOx undone; given back $1.500000",
    ],
  ],
  redeemed: [[sentences.redeemed(dollars, 9), "Redeemed code 9 for $1.500000"]],
  channelDisabled: [[sentences.channelDisabled(channel), "Channel “备用 A” (#7) was disabled"]],
  channelDisabledFor: [
    [sentences.channelDisabledFor(channel, "invalid key"), "Channel “备用 A” (#7) was disabled: invalid key"],
    [
      sentences.channelDisabledFor(channel, sentences.CHANNEL_WITHOUT_BALANCE.zh),
      "Channel “备用 A” (#7) was disabled: its balance is used up",
    ],
  ],
  channelEnabled: [[sentences.channelEnabled(channel), "Channel “备用 A” (#7) was enabled"]],
  channelTooSlow: [[sentences.channelTooSlow(12.5, 10).zh, sentences.channelTooSlow(12.5, 10).en]],
  CHANNEL_WITHOUT_BALANCE: [[sentences.CHANNEL_WITHOUT_BALANCE.zh, sentences.CHANNEL_WITHOUT_BALANCE.en]],
  ROOT_RESCUED: [[sentences.ROOT_RESCUED, "Signed in by a link of weir rescue"]],
  tokenRotated: [
    [
      sentences.tokenRotated("laptop", 3600),
      "New secret for the key laptop; the old one ends after 3600 seconds",
    ],
    [sentences.tokenRotated("laptop", 0), "New secret for the key laptop; the old one ended at once"],
  ],
  CHANNEL_WITHOUT_KEY: [[sentences.CHANNEL_WITHOUT_KEY.zh, sentences.CHANNEL_WITHOUT_KEY.en]],
  CHANNELS_TESTED: [[sentences.CHANNELS_TESTED, "All channels have been tested"]],
};

describe("readings", () => {
  test("every sentence of the log has an example here", () => {
    expect(Object.keys(EXAMPLES).toSorted()).toEqual(
      // Lines of the audit trail come from `op`.
      Object.keys(sentences)
        .filter((name) => name !== "auditSentence")
        .toSorted(),
    );
  });

  test.each(Object.values(EXAMPLES).flat())("%s", (sentence, english) => {
    expect(readInEnglish(sentence)).toBe(english);
  });

  test("what is none of them stays: other people's words, and a charge with words that are not known", () => {
    for (const text of ["", "Model ratio 1", "上游的话", "模型倍率 1.00，未知 3"]) {
      expect([text, readInEnglish(text)]).toEqual([text, undefined]);
    }
  });
});

describe("rows in the reader's language", () => {
  const row = (part: Partial<LogJson>) =>
    ({ type: 4, content: "", other: "", model_name: "", ...part }) as LogJson;
  const textOf = (part: Partial<LogJson>, language: "en" | "zh") =>
    inLanguage([row(part)], language)[0]?.text;

  test("the wire's field is never changed, and the reading stands beside it only where it differs", () => {
    const [english] = inLanguage([row({ content: sentences.CHANNEL_TEST })], "en");
    expect([english?.content, english?.text]).toEqual([sentences.CHANNEL_TEST, "Channel test"]);
    expect(textOf({ content: sentences.CHANNEL_TEST }, "zh")).toBeUndefined();
    expect(textOf({ content: "plain words" }, "en")).toBeUndefined();
  });

  test("an error says its public text by its code, with its request id; the upstream's own words stand", () => {
    const other = JSON.stringify({ error_code: "model_not_priced" });
    const content = "模型 m 倍率或价格未配置 (request id: 2026abc)";
    expect(textOf({ type: 5, content, other, model_name: "m" }, "en")).toBe(
      "The price of model m has not been set; ask the administrator to set it or to switch on self-use mode (request id: 2026abc)",
    );
    const upstream = JSON.stringify({
      error_code: "upstream_auth",
      admin_info: { upstream_text: "bad key" },
    });
    expect(textOf({ type: 5, content: "bad key", other: upstream }, "en")).toBeUndefined();
    const named = JSON.stringify({ error_code: "name_invalid" });
    expect(textOf({ type: 5, content: "x", other: named }, "en")).toBeUndefined();
  });
});
