// What the channel editor shows for each provider type: names, default address, key hint, special field.
// Refuses nothing; light on purpose, because it is shipped to the browser. Preset models come from the server.
import type { Language } from "./enums.ts";

type Text = Record<Language, string>;

export interface ProviderForm {
  id: number;
  label: Text;
  group: "openai" | "own" | "task";
  /** Shut down: kept for channels that still exist, not offered for new ones. */
  isRetired?: boolean;
  baseUrl: string;
  keyHint?: Text;
  /** The column `other`: what it means for this type. */
  other?: { label: Text; hint?: Text; default?: string };
  /** The address field takes a full request URL, or is required. */
  baseUrlHint?: Text;
  /** The key is one text even when it has several lines. */
  isKeyWhole?: boolean;
}

const form = (
  id: number,
  group: ProviderForm["group"],
  baseUrl: string,
  zh: string,
  en: string,
  more: Partial<ProviderForm> = {},
): ProviderForm => ({ id, group, baseUrl, label: { zh, en }, ...more });

export const PROVIDER_FORMS: readonly ProviderForm[] = [
  form(1, "openai", "https://api.openai.com", "OpenAI", "OpenAI"),
  form(2, "task", "https://oa.api2d.net", "Midjourney Proxy", "Midjourney Proxy"),
  form(3, "openai", "", "Azure OpenAI", "Azure OpenAI", {
    other: {
      label: { zh: "默认 API 版本", en: "Default API version" },
      hint: { zh: "例如 2025-04-01-preview", en: "For example 2025-04-01-preview" },
    },
    baseUrlHint: {
      zh: "必填，例如 https://资源名.openai.azure.com",
      en: "Required, for example https://resource.openai.azure.com",
    },
  }),
  form(4, "openai", "http://localhost:11434", "Ollama", "Ollama"),
  form(5, "task", "https://api.openai-sb.com", "Midjourney Proxy Plus", "Midjourney Proxy Plus"),
  form(6, "openai", "https://api.openaimax.com", "OpenAI Max", "OpenAI Max"),
  form(7, "openai", "https://api.ohmygpt.com", "OhMyGPT", "OhMyGPT"),
  form(8, "openai", "", "自定义渠道", "Custom", {
    baseUrlHint: {
      zh: "完整的请求地址，可包含 {model}",
      en: "The complete request address; may contain {model}",
    },
  }),
  form(9, "openai", "https://api.caipacity.com", "AILS", "AILS"),
  form(10, "openai", "https://api.aiproxy.io", "AI Proxy", "AI Proxy"),
  form(11, "own", "", "Google PaLM2", "Google PaLM 2", { isRetired: true }),
  form(12, "openai", "https://api.api2gpt.com", "API2GPT", "API2GPT"),
  form(13, "openai", "https://api.aigc2d.com", "AIGC2D", "AIGC2D"),
  form(14, "own", "https://api.anthropic.com", "Anthropic Claude", "Anthropic Claude"),
  form(15, "own", "https://aip.baidubce.com", "百度文心千帆", "Baidu ERNIE (Qianfan v1)", {
    keyHint: { zh: "按照如下格式输入：APIKey|SecretKey", en: "Format: APIKey|SecretKey" },
  }),
  form(16, "own", "https://open.bigmodel.cn", "智谱 ChatGLM", "Zhipu ChatGLM (v3)"),
  form(17, "openai", "https://dashscope.aliyuncs.com", "阿里通义千问", "Alibaba Qwen (DashScope)"),
  form(18, "own", "", "讯飞星火认知", "iFlytek Spark", {
    keyHint: { zh: "按照如下格式输入：APPID|APISecret|APIKey", en: "Format: APPID|APISecret|APIKey" },
    other: {
      label: { zh: "模型版本", en: "Model version" },
      hint: { zh: "星火大模型的版本，例如 v2.1", en: "Version of Spark, for example v2.1" },
      default: "v2.1",
    },
  }),
  form(19, "openai", "https://api.360.cn", "360 智脑", "360 Zhinao"),
  form(20, "openai", "https://openrouter.ai/api", "OpenRouter", "OpenRouter"),
  form(21, "own", "https://api.aiproxy.io", "知识库：AI Proxy", "AI Proxy knowledge base", {
    other: { label: { zh: "知识库 ID", en: "Knowledge base id" } },
    isRetired: true,
  }),
  form(22, "openai", "https://fastgpt.run/api/openapi", "知识库：FastGPT", "FastGPT knowledge base", {
    keyHint: {
      zh: "按照如下格式输入：APIKey-AppId，例如：fastgpt-0sp2gtvfdgyi4k30jwlgwf1i-64f335d84283f05518e9e041",
      en: "Format: APIKey-AppId",
    },
    baseUrlHint: { zh: "私有部署地址", en: "Address of a private deployment" },
  }),
  form(23, "own", "https://hunyuan.tencentcloudapi.com", "腾讯混元", "Tencent Hunyuan", {
    keyHint: { zh: "按照如下格式输入：AppId|SecretId|SecretKey", en: "Format: AppId|SecretId|SecretKey" },
  }),
  form(24, "own", "https://generativelanguage.googleapis.com", "Google Gemini", "Google Gemini"),
  form(25, "openai", "https://api.moonshot.cn", "Moonshot", "Moonshot (Kimi)"),
  form(26, "own", "https://open.bigmodel.cn", "智谱 GLM-4V", "Zhipu GLM-4 / 4V (v4)"),
  form(27, "openai", "https://api.perplexity.ai", "Perplexity", "Perplexity"),
  form(31, "openai", "https://api.lingyiwanwu.com", "零一万物", "01.AI Yi (LingYiWanWu)"),
  form(33, "own", "", "AWS Claude", "AWS Bedrock Claude", {
    keyHint: { zh: "按照如下格式输入：Ak|Sk|Region", en: "Format: AccessKey|SecretKey|Region" },
  }),
  form(34, "own", "https://api.cohere.ai", "Cohere", "Cohere"),
  form(35, "openai", "https://api.minimax.chat", "MiniMax", "MiniMax"),
  form(36, "task", "", "Suno API", "Suno API", {
    baseUrlHint: { zh: "填到 /suno 前的地址即可", en: "The address up to, not including, /suno" },
  }),
  form(37, "own", "https://api.dify.ai", "Dify", "Dify"),
  form(38, "openai", "https://api.jina.ai", "Jina", "Jina"),
  form(39, "openai", "https://api.cloudflare.com", "Cloudflare", "Cloudflare Workers AI", {
    other: { label: { zh: "账户 ID", en: "Account id" } },
  }),
  form(40, "openai", "https://api.siliconflow.cn", "SiliconCloud", "SiliconFlow (SiliconCloud)"),
  form(41, "own", "", "Vertex AI", "Google Vertex AI", {
    keyHint: { zh: "完整的服务账号 JSON", en: "The complete service account JSON" },
    isKeyWhole: true,
    other: {
      label: { zh: "部署地区", en: "Region" },
      hint: {
        zh: "地区名，或含 default 键的地区映射 JSON",
        en: "A region, or a JSON map of regions with a default key",
      },
    },
  }),
  form(42, "openai", "https://api.mistral.ai", "Mistral AI", "Mistral AI"),
  form(43, "openai", "https://api.deepseek.com", "DeepSeek", "DeepSeek"),
  form(44, "own", "https://api.moka.ai", "嵌入模型：MokaAI M3E", "MokaAI M3E embeddings"),
  form(
    45,
    "openai",
    "https://ark.cn-beijing.volces.com",
    "字节火山方舟、豆包、DeepSeek通用",
    "Volcengine Ark (Doubao)",
  ),
  form(46, "openai", "https://qianfan.baidubce.com", "百度文心千帆V2", "Baidu Qianfan v2"),
  form(47, "openai", "", "Xinference", "Xinference"),
  form(48, "openai", "https://api.x.ai", "xAI", "xAI Grok"),
  form(49, "own", "https://api.coze.cn", "Coze", "Coze", {
    other: { label: { zh: "智能体 ID", en: "Agent id" } },
  }),
  form(50, "task", "https://api.klingai.com", "可灵", "Kling"),
  form(51, "task", "https://visual.volcengineapi.com", "即梦", "Jimeng"),
  form(52, "task", "https://api.vidu.cn", "Vidu", "Vidu"),
  form(53, "openai", "https://llm.submodel.ai", "Submodel", "Submodel"),
  form(54, "task", "https://ark.cn-beijing.volces.com", "豆包视频", "Doubao Video (Seedance)"),
  form(55, "task", "https://api.openai.com", "Sora", "OpenAI Sora"),
  form(56, "own", "https://api.replicate.com", "Replicate", "Replicate"),
  form(57, "own", "https://chatgpt.com", "Codex", "ChatGPT subscription (Codex)"),
  form(58, "own", "", "高级自定义", "Advanced Custom"),
  form(59, "openai", "", "Sub2API", "Sub2API"),
  form(60, "openai", "", "New API", "New API"),
];

const BY_ID = new Map(PROVIDER_FORMS.map((each) => [each.id, each]));

export function providerForm(type: number): ProviderForm | undefined {
  return BY_ID.get(type);
}
