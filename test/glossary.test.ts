// The console's words: one for each thing, in both languages. What old clients read on the wire keeps its words (failure.json in
// Chinese, and the few sentences that the specification has word for word).
import { expect, test } from "bun:test";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { LANGUAGES } from "../src/shared/enums.ts";
import type { Language } from "../src/shared/enums.ts";

const LOCALES = join(import.meta.dir, "..", "locales");

interface Term {
  /** The word to use. */
  say: string;
  /** The words that it stands instead of. */
  not: RegExp;
  /** "area.key" of texts that are right all the same. */
  except?: readonly string[];
}

/** 渠道 channel, 令牌 API key, 额度 quota, 倍率 ratio, 分组 group, 兑换码 redemption code, 标签 tag: and besides those … */
const GLOSSARY: Record<Language, readonly Term[]> = {
  en: [
    // "Midjourney log in the menu" is a log.
    { say: "sign in", not: /\blog(?:ged|ging)?[ -]?in\b/i, except: ["option.help.DrawingEnabled"] },
    { say: "sign out", not: /\blog(?:ged|ging)? ?out\b/i },
    { say: "email", not: /\be-mails?\b/i },
    { say: "email, for what is sent by one", not: /\bletters?\b/i, except: ["failure.image_size_sign"] },
    {
      say: "American spelling",
      not: /\b\w*(?:initialis|organis|normalis|authoris|customis|colour|behaviour|favourite)/i,
    },
    {
      say: "starts with",
      not: /\bbegins? with\b/i,
      except: ["option.help.relay.stream_idle_timeout_seconds"],
    },
    { say: "per line", not: /\b(?:one|range|key) a line\b/i },
    { say: "ID", not: /\b(?:request|channel|task|user|client|merchant) id\b/, except: ["failure"] },
    { say: "role", not: /\branks?\b/i },
    { say: "API key, super administrator", not: /\bAPI[- ]token|\broot user\b/i },
    { say: "at least 8 characters", not: /\blength (?:at least|must)/i },
  ],
  zh: [
    { say: "登录", not: /登陆/ },
    { say: "账户 or 账号", not: /帐[号户]/ },
    { say: "渠道", not: /通道/, except: ["channel.chooseToDelete", "failure"] },
    { say: "邮箱", not: /电子邮[箱件]/ },
    { say: "请求 ID", not: /请求编号/, except: ["failure"] },
    { say: "…", not: /\.\.\.$/ },
    {
      say: "a space between Chinese and Webhook",
      not: /Webhook[\u4e00-\u9fff]|[\u4e00-\u9fff]Webhook/,
      except: ["failure"],
    },
  ],
};

/** Whole areas, and single texts. */
const isExcepted = ({ except = [] }: Term, area: string, key: string) =>
  except.includes(area) || except.includes(`${area}.${key}`);

test.each(
  LANGUAGES.flatMap((language) => GLOSSARY[language].map((term) => [language, term.say, term] as const)),
)("in %s: %s", (language, say, term) => {
  const wrong: string[] = [];
  for (const file of readdirSync(join(LOCALES, language))) {
    const area = file.replace(/\.json$/, "");
    const texts = JSON.parse(readFileSync(join(LOCALES, language, file), "utf8")) as Record<string, string>;
    for (const [key, text] of Object.entries(texts)) {
      if (term.not.test(text) && !isExcepted(term, area, key)) wrong.push(`${area}.${key}: ${text}`);
    }
  }
  expect([say, wrong]).toEqual([say, []]);
});
