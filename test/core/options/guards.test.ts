// Options that lean on others: each switch is refused with its sentence until what it needs is there, and what it needs
// stays while it is on. Pay buttons of old consoles follow rails that exist, not settings.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { OptionKey } from "../../../src/core/options/definitions.ts";
import { siteStatus } from "../../../src/core/site/status.ts";
import type { FailureCode } from "../../../src/shared/failure-codes.ts";
import { Failure } from "../../../src/shared/failures.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp } from "../../support/app.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";

interface Case {
  key: OptionKey;
  on: string;
  /** In this order, each refusal that is told until the text behind it is there. */
  needs: readonly (readonly [OptionKey, string, FailureCode])[];
}

const CASES: readonly Case[] = [
  {
    key: "GitHubOAuthEnabled",
    on: "true",
    needs: [
      ["GitHubClientId", "id", "option_needs_github"],
      ["GitHubClientSecret", "secret", "option_needs_github"],
      ["ServerAddress", "https://gw.example", "option_needs_site_address"],
    ],
  },
  {
    key: "oidc.enabled",
    on: "true",
    needs: [
      ["oidc.client_id", "id", "option_needs_oidc"],
      ["oidc.client_secret", "secret", "option_needs_oidc"],
      [
        "oidc.well_known",
        "https://id.example/.well-known/openid-configuration",
        "option_needs_oidc_endpoints",
      ],
      ["ServerAddress", "https://gw.example", "option_needs_site_address"],
    ],
  },
  {
    key: "google.enabled",
    on: "true",
    needs: [
      ["google.client_id", "id", "option_needs_google"],
      ["google.client_secret", "secret", "option_needs_google"],
      ["ServerAddress", "https://gw.example", "option_needs_site_address"],
    ],
  },
  {
    key: "discord.enabled",
    on: "true",
    needs: [
      ["discord.client_id", "id", "option_needs_discord"],
      ["discord.client_secret", "secret", "option_needs_discord"],
      ["ServerAddress", "https://gw.example", "option_needs_site_address"],
    ],
  },
  {
    key: "LinuxDOOAuthEnabled",
    on: "true",
    needs: [
      ["LinuxDOClientId", "id", "option_needs_linuxdo"],
      ["LinuxDOClientSecret", "secret", "option_needs_linuxdo"],
      ["ServerAddress", "https://gw.example", "option_needs_site_address"],
    ],
  },
  {
    key: "WeChatAuthEnabled",
    on: "true",
    needs: [
      ["WeChatServerAddress", "https://wechat.example", "option_needs_wechat"],
      ["WeChatServerToken", "token", "option_needs_wechat"],
      ["WeChatAccountQRCodeImageURL", "https://wechat.example/qr.png", "option_needs_wechat"],
    ],
  },
  {
    key: "TelegramOAuthEnabled",
    on: "true",
    needs: [
      ["TelegramBotToken", "token", "option_needs_telegram"],
      ["TelegramBotName", "weir_bot", "option_needs_telegram_name"],
    ],
  },
  {
    key: "TurnstileCheckEnabled",
    on: "true",
    needs: [
      ["TurnstileSiteKey", "site", "option_needs_turnstile"],
      ["TurnstileSecretKey", "secret", "option_needs_turnstile"],
    ],
  },
  {
    key: "EmailVerificationEnabled",
    on: "true",
    needs: [
      ["SMTPServer", "mail.example", "option_needs_smtp"],
      ["SMTPFrom", "site@mail.example", "option_needs_smtp"],
    ],
  },
  {
    key: "WorkerAllowHttpImageRequestEnabled",
    on: "true",
    needs: [["WorkerUrl", "https://worker.example", "option_needs_worker"]],
  },
  {
    // A rail's own.
    key: "PayAddress" as string as OptionKey,
    on: "https://pay.example",
    needs: [["ServerAddress", "https://gw.example", "option_needs_server_address"]],
  },
];

async function codeOf(work: Promise<void>): Promise<FailureCode | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    if (error instanceof Failure) return error.code;
    throw error;
  }
}

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({ database });
  });
  afterAll(() => app.close());

  test.each(CASES)("$key acts with everything it needs, and not before", async ({ key, on, needs }) => {
    const { options } = app.deps;
    for (const [needed, value, code] of needs) {
      expect([needed, await codeOf(options.set(key, on))]).toEqual([needed, code]);
      expect(options.text(key)).not.toBe(on);
      await options.set(needed, value);
    }
    await options.set(key, on);
    expect(options.text(key)).toBe(on);
    // Half of it may not be taken away, nor may it be blanked.
    for (const [needed, value] of needs)
      for (const nothing of ["", " "]) {
        const code = await codeOf(options.set(needed, nothing));
        // Kinds that know addresses refuse a blank by themselves.
        expect([needed, code === "option_in_use" || code === "option_not_url"]).toEqual([needed, true]);
        expect(options.text(needed)).toBe(value);
      }
    // Off is always taken, and then so is the rest.
    await options.set(key, on === "true" ? "false" : "");
    for (const [needed] of needs) await options.set(needed, "");
    expect(needs.map(([needed]) => options.text(needed))).toEqual(needs.map(() => ""));
  });

  test("a sender may be named by the account alone, and endpoints by hand", async () => {
    const { options } = app.deps;
    await options.set("SMTPServer", "mail.example");
    await options.set("SMTPAccount", "site@mail.example");
    await options.set("EmailVerificationEnabled", "true");
    await options.set("SMTPFrom", "other@mail.example");
    // One of the two is enough.
    await options.set("SMTPAccount", "");
    expect(await codeOf(options.set("SMTPFrom", ""))).toBe("option_in_use");
    await options.set("EmailVerificationEnabled", "false");
    await options.set("oidc.client_id", "id");
    await options.set("oidc.client_secret", "secret");
    await options.set("oidc.authorization_endpoint", "https://id.example/auth/");
    await options.set("oidc.token_endpoint", "https://id.example/token");
    expect(await codeOf(options.set("oidc.enabled", "true"))).toBe("option_needs_oidc_endpoints");
    await options.set("oidc.user_info_endpoint", "https://id.example/me");
    await options.set("ServerAddress", "https://gw.example");
    await options.set("oidc.enabled", "true");
    // Called as it stands: some providers tell /auth from /auth/.
    expect(options.get("oidc.authorization_endpoint")).toBe("https://id.example/auth/");
    await options.set("oidc.enabled", "false");
    await options.set("ServerAddress", "");
  });

  test("a site offers payment while its rail stands whole, and while it sells", async () => {
    const { options } = app.deps;
    const settings = {
      ServerAddress: "https://gw.example",
      PayAddress: "https://pay.example",
      EpayId: "7",
      EpayKey: "k",
    };
    const isOpen = async () => (await siteStatus(app.deps)).enable_online_topup;
    for (const [key, value] of Object.entries(settings)) {
      expect(await isOpen()).toBe(false);
      await options.set(key, value);
    }
    expect(await isOpen()).toBe(true);
    for (const mode of ["SelfUseModeEnabled", "DemoSiteEnabled"] as const) {
      await options.set(mode, "true");
      expect(await isOpen()).toBe(false);
      const pay = await app.call<{ code: string }>(
        "POST",
        "/api/user/pay",
        { amount: 1 },
        await app.createUser(),
      );
      expect(pay.body.code).toBe(mode === "DemoSiteEnabled" ? "demo_read_only" : "payment_unset");
      await options.set(mode, "false");
    }
  });
});
