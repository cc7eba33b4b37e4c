// The table of adapters by the name that catalogue rows give.
// Refuses names without an entry: test/providers/catalog.test.ts compares both sides.
import type { Adapter } from "./adapter.ts";
import { aiproxyLibrary } from "./adapters/aiproxy-library.ts";
import { ali } from "./adapters/ali.ts";
import { baidu } from "./adapters/baidu.ts";
import { bedrock } from "./adapters/bedrock.ts";
import { cloudflare } from "./adapters/cloudflare.ts";
import { cohere } from "./adapters/cohere.ts";
import { coze } from "./adapters/coze.ts";
import { dify } from "./adapters/dify.ts";
import { gemini } from "./adapters/gemini.ts";
import { minimax } from "./adapters/minimax.ts";
import { ollama } from "./adapters/ollama.ts";
import { replicate } from "./adapters/replicate.ts";
import { siliconflow } from "./adapters/siliconflow.ts";
import { tencent } from "./adapters/tencent.ts";
import { vertex } from "./adapters/vertex.ts";
import { xunfei } from "./adapters/xunfei.ts";
import { zhipuPictures } from "./adapters/zhipu-pictures.ts";
import { zhipuV3 } from "./adapters/zhipu-v3.ts";

export const ADAPTERS: Readonly<Record<string, Adapter>> = {
  "aiproxy-library": aiproxyLibrary,
  ali,
  baidu,
  bedrock,
  cloudflare,
  cohere,
  coze,
  dify,
  gemini,
  minimax,
  ollama,
  replicate,
  siliconflow,
  tencent,
  vertex,
  xunfei,
  "zhipu-pictures": zhipuPictures,
  "zhipu-v3": zhipuV3,
};
