// Writes docs/error-codes.md from the table of codes, the dictionaries and the dialects' encoders; with --check it only says
// whether the page is fresh.
import type { DialectName } from "../src/protocol/canonical.ts";
import { errorCodes, errorMeaning } from "../src/http/error-codes.ts";
import type { ErrorCode } from "../src/http/error-codes.ts";
import { encodeFailure } from "../src/relay/wire/render-failure.ts";
import { Failure, KIND_STATUS } from "../src/shared/failures.ts";
import type { FailureKind } from "../src/shared/failures.ts";

const PAGE = `${import.meta.dir}/../docs/error-codes.md`;

/** Who can mend a failure, in both languages, and whether the same request may succeed later. */
const KINDS: Readonly<Record<FailureKind, readonly [en: string, zh: string, again: boolean]>> = {
  client: ["the request itself; change it", "请求本身有误，需修改请求", false],
  auth: ["the API key or the session", "API 密钥或登录状态", false],
  forbidden: ["what the key or its owner may do", "密钥或用户没有权限", false],
  quota: ["the balance of the user or of the key", "用户或密钥的额度不足", false],
  limit: ["a limit of this gateway; wait as Retry-After says", "网关自身的限制，按 Retry-After 等待", true],
  "no-channel": ["channels exist, but none can serve now", "渠道存在，但目前均不可用", true],
  "upstream-auth": [
    "the gateway's own credentials at its upstream; only the operator can mend it",
    "网关在上游的凭证有误，只有管理员能处理",
    false,
  ],
  "upstream-quota": [
    "the gateway's own account at its upstream has no credit; only the operator can mend it",
    "网关在上游的账户余额不足，只有管理员能处理",
    false,
  ],
  "upstream-limit": [
    "the upstreams are saturated; wait as Retry-After says",
    "上游已饱和，按 Retry-After 等待",
    true,
  ],
  "upstream-request": [
    "the upstream did not accept the request; change it",
    "上游不接受该请求，需修改请求",
    false,
  ],
  "upstream-refusal": ["the upstream refused by its content policy", "上游按内容政策拒绝", false],
  "context-length": ["the conversation is too long; shorten it", "对话过长，需缩短", false],
  "upstream-down": ["the upstream is unavailable", "上游不可用", true],
  "upstream-timeout": ["the upstream took too long", "上游响应超时", true],
  "broken-stream": ["the answer broke off", "回答中断", true],
  internal: ["the gateway or its configuration", "网关或其配置出错", true],
};

function word(dialect: DialectName, { code, kind, status, hasOwnStatus }: ErrorCode): string {
  const failure = new Failure(kind, code, hasOwnStatus ? { status } : {});
  const view = { dialect, language: "en", requestId: "" } as const;
  const { error } = encodeFailure(failure, view).body as {
    error: { code?: unknown; type?: string; status?: string };
  };
  const shown = dialect === "anthropic" ? error.type : dialect === "gemini" ? error.status : error.code;
  return typeof shown === "string" ? `\`${shown}\`` : "–";
}

const row = (...cells: readonly (string | number)[]): string => `| ${cells.join(" | ")} |`;
const rule = (columns: number): string => `|${"---|".repeat(columns)}`;

function page(): string {
  const kinds = Object.entries(KINDS).map(([kind, [en, zh, again]]) =>
    row(kind, KIND_STATUS[kind as FailureKind], again ? "yes / 是" : "no / 否", en, zh),
  );
  const relay = errorCodes("relay").map((each) =>
    row(
      `\`${each.code}\``,
      each.status,
      each.kind,
      word("openai-chat", each),
      word("anthropic", each),
      word("gemini", each),
      errorMeaning(each.code, "en"),
      errorMeaning(each.code, "zh"),
    ),
  );
  const consoles = errorCodes("console").map(({ code, kind }) =>
    row(`\`${code}\``, kind, errorMeaning(code, "en"), errorMeaning(code, "zh")),
  );
  return [
    "<!-- Written by `bun scripts/error-codes.ts` from src/shared/failure-codes.ts and locales/*/failure.json. -->",
    "",
    "# Error codes / 错误码",
    "",
    "Every refusal of the relay carries one of these codes in the header `x-weir-error-code`, whatever the dialect; the body",
    "says it in the words of the dialect. The status is the usual one: an upstream's own status, where it is about the request,",
    "and a channel's status mapping may put another in its place. On OpenAI's routes a field that is missing or wrong has the",
    "older code of its endpoint in the body (`invalid_text_request`, `invalid_image_request` and so on), and an upstream's",
    "refusal of a request has the upstream's own. `–`: the body carries no code. Words in braces are filled in. Calls of the",
    "console (`/api`) answer `{success: false, message, code}`, with status 200 where the kind has none of its own.",
    "",
    "中继的每个拒绝都在响应头 `x-weir-error-code` 中带有下列代码之一，与协议无关；响应体使用各协议自己的措辞。状态码为通常值：",
    "与请求有关的上游状态码以及渠道的状态码映射可能取而代之。在 OpenAI 路由上，字段缺失或有误时响应体沿用该接口的旧代码",
    "（如 `invalid_text_request`、`invalid_image_request`），上游对请求的拒绝沿用上游自己的代码。`–` 表示响应体不带代码，花括号中的",
    "词会被替换。控制台接口（`/api`）返回 `{success: false, message, code}`，若该类别没有自己的状态码则为 200。",
    "",
    "## Kinds / 类别",
    "",
    row("kind", "HTTP", "try again / 可重试", "what is at fault", "问题所在"),
    rule(5),
    ...kinds,
    "",
    "## The relay / 中继",
    "",
    row("code", "HTTP", "kind", "OpenAI `code`", "Anthropic `type`", "Gemini `status`", "meaning", "含义"),
    rule(8),
    ...relay,
    "",
    "## The console / 控制台",
    "",
    row("code", "kind", "meaning", "含义"),
    rule(4),
    ...consoles,
    "",
  ].join("\n");
}

const wanted = page();
if (process.argv.includes("--check")) {
  const file = Bun.file(PAGE);
  if (!(await file.exists()) || (await file.text()) !== wanted) {
    console.error(
      "docs/error-codes.md is not what the table of codes says: run `bun scripts/error-codes.ts`",
    );
    process.exit(1);
  }
} else await Bun.write(PAGE, wanted);
