// WeChat by a server of the operator's: people send a word to an account, are answered a short code, and type it here.
// Refuses guessing: few wrong codes from one address, and not many on the whole site.
import { refuse } from "../../../shared/failures.ts";
import { jsonObject } from "../../../shared/json-object.ts";
import type { Deps } from "../../deps.ts";
import { tooMany } from "../../kit/site-limits.ts";
import type { SiteLimits } from "../../kit/site-limits.ts";
import { subjectAt } from "../../../shared/field-paths.ts";
import type { Profile } from "./types.ts";

type WeChatDeps = Pick<Deps, "options" | "guard" | "reach" | "clock" | "logger">;

const WINDOW_MS = 600_000;
const SITE_WRONG = 60;
const ADDRESS_WRONG = 5;
const TIMEOUT_MS = 10_000;
const ANSWER_BYTES = 256 * 1024;
const MAX_CODE = 64;
const SITE = "site";

export interface WeChat {
  /** Whom the code belongs to. Throws Failures `wechat_off`, `wechat_code_wrong`, `wechat_down`, `too_many_attempts`. */
  identify(code: string, address: string): Promise<Profile>;
}

/** What the server says of the code; undefined: it knows none such. Throws where it cannot be asked. */
async function ask({ options, guard, reach }: WeChatDeps, code: string): Promise<string | undefined> {
  const base = options.get("WeChatServerAddress").replace(/\/+$/, "");
  const url = `${base}/api/wechat/user?code=${encodeURIComponent(code)}`;
  const { bytes } = await guard(url, {
    headers: { authorization: options.get("WeChatServerToken"), accept: "application/json" },
    maxBytes: ANSWER_BYTES,
    timeoutMs: TIMEOUT_MS,
    maxRedirects: 0,
    allow: reach.networks(url, { baseUrl: base, setting: {} }),
  });
  // It says no with any status: what counts stands in the answer.
  const answer = jsonObject(new TextDecoder().decode(bytes));
  if (typeof answer?.success !== "boolean") throw new Error("the WeChat server answered no envelope");
  return answer.success ? subjectAt(answer, "data") : undefined;
}

export function createWeChat(
  deps: WeChatDeps,
  limits: Pick<SiteLimits, "wrong" | "wrongPerAddress">,
): WeChat {
  const ofSite = limits.wrong("wechat-site", { limit: SITE_WRONG, windowMs: WINDOW_MS });
  const ofAddress = limits.wrongPerAddress("wechat", { count: ADDRESS_WRONG, windowMs: WINDOW_MS });

  /** Both limits around one try; a server that is down is nobody's wrong guess. */
  async function limited(address: string, run: () => Promise<string | undefined>) {
    const wait = await ofAddress.enter(address);
    if (wait !== undefined) throw tooMany(wait);
    let isWrong = false;
    try {
      const siteWait = await ofSite.enter(SITE);
      if (siteWait !== undefined) throw tooMany(siteWait);
      try {
        const subject = await run();
        isWrong = subject === undefined;
        return subject;
      } finally {
        ofSite.leave(SITE, isWrong);
      }
    } finally {
      ofAddress.leave(address, isWrong);
    }
  }

  return {
    async identify(code, address) {
      if (!deps.options.get("WeChatAuthEnabled")) throw refuse("wechat_off");
      const typed = code.trim();
      if (typed === "" || typed.length > MAX_CODE) throw refuse("wechat_code_wrong");
      let subject: string | undefined;
      let isDown = false;
      try {
        subject = await limited(address, async () => {
          try {
            return await ask(deps, typed);
          } catch (error) {
            isDown = true;
            throw error;
          }
        });
      } catch (error) {
        if (!isDown) throw error;
        deps.logger.warn("the WeChat server could not be asked", { error: String(error) });
        throw refuse("wechat_down");
      }
      if (subject === undefined) throw refuse("wechat_code_wrong");
      return { subject, emailVerified: false, claims: {} };
    },
  };
}
