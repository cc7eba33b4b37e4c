// Who makes a model, by the beginning of its name: the facet of price lists. Channels resell what others make, so that a
// channel's type does not say it. A name that no row knows counts under its own beginning.
import { prefixOf } from "../shared/model-prefix.ts";

type VendorRow = readonly [id: string, en: string, zh: string, prefixes: string];

/** The prefixes as `prefixOf` makes them: first letters, or what stands before a slash. */
const ROWS: readonly VendorRow[] = [
  [
    "openai",
    "OpenAI",
    "OpenAI",
    "gpt chatgpt o text dall tts whisper davinci babbage sora codex openai omni computer",
  ],
  ["anthropic", "Anthropic", "Anthropic", "claude anthropic"],
  ["google", "Google", "Google", "gemini imagen veo palm gemma aqa google"],
  ["deepseek", "DeepSeek", "深度求索 DeepSeek", "deepseek deepseek-ai"],
  ["alibaba", "Alibaba Qwen", "阿里巴巴 通义千问", "qwen qwq qvq wan wanx"],
  ["zhipu", "Zhipu", "智谱", "glm chatglm cogview cogvideox thudm zai-org"],
  ["moonshot", "Moonshot", "月之暗面", "moonshot kimi moonshotai"],
  ["xai", "xAI", "xAI", "grok x-ai"],
  [
    "mistral",
    "Mistral",
    "Mistral",
    "mistral mixtral codestral ministral magistral pixtral devstral open mistralai",
  ],
  ["meta", "Meta", "Meta", "llama meta meta-llama"],
  ["cohere", "Cohere", "Cohere", "command cohere rerank"],
  ["minimax", "MiniMax", "MiniMax", "abab minimax"],
  ["baidu", "Baidu", "百度", "ernie bloomz"],
  ["tencent", "Tencent", "腾讯", "hunyuan tencent"],
  ["iflytek", "iFlytek", "科大讯飞", "sparkdesk spark"],
  ["bytedance", "ByteDance", "字节跳动", "doubao seed seedream seedance jimeng bytedance"],
  ["kuaishou", "Kuaishou", "快手", "kling"],
  ["stepfun", "StepFun", "阶跃星辰", "step stepfun-ai"],
  ["baichuan", "Baichuan", "百川智能", "baichuan"],
  ["yi", "01.AI", "零一万物", "yi"],
  ["midjourney", "Midjourney", "Midjourney", "mj swap midjourney"],
  ["suno", "Suno", "Suno", "suno"],
  ["perplexity", "Perplexity", "Perplexity", "sonar perplexity"],
  ["jina", "Jina", "Jina", "jina"],
  ["baai", "BAAI", "智源研究院", "bge baai"],
  ["vidu", "Vidu", "生数科技", "vidu viduq"],
];

const BY_PREFIX: ReadonlyMap<string, string> = new Map(
  ROWS.flatMap(([id, , , prefixes]) => prefixes.split(" ").map((prefix) => [prefix, id] as const)),
);
const BY_ID: ReadonlyMap<string, VendorRow> = new Map(ROWS.map((row) => [row[0], row]));

function vendorOf(model: string): string {
  const prefix = prefixOf(model);
  const known = BY_PREFIX.get(prefix);
  if (known !== undefined) return known;
  // "Pro/deepseek-ai/DeepSeek-V3": a shop's shelf before the maker's name.
  const rest = model.slice(model.indexOf("/") + 1);
  return (rest === model ? undefined : BY_PREFIX.get(prefixOf(rest))) ?? prefix;
}

function vendorTitle(id: string, language: "zh" | "en"): string {
  const row = BY_ID.get(id);
  if (!row) return id;
  return language === "zh" ? row[2] : row[1];
}

/**
 * `of`: the maker's id; the beginning of the name where no row knows it; "" for a name that begins with no letter. `title`: as
 * people of the language know the maker; an id that no row has stands for itself.
 */
export const vendors = { of: vendorOf, title: vendorTitle };
