// SiliconFlow's pictures: OpenAI's path with other words in the body and in the answer.
// A model's own fields (steps, guidance, a picture to start from) pass as they are.
import type { JsonObject } from "../../protocol/canonical.ts";
import { asList, asObject, asString } from "../../protocol/json.ts";
import type { AdapterCall } from "../adapter.ts";
import { answerOf, post } from "../adapter-kit.ts";
import { pictureCount, picturesFrom } from "./pictures.ts";

/**
 * OpenAI's fields that have no counterpart here, and the words for what they say of number and size, which is priced. Of these
 * the provider's own word for the size counts where OpenAI's is absent, as it does for the price.
 */
const UNKNOWN: ReadonlySet<string> = new Set([
  "n",
  "size",
  "response_format",
  "quality",
  "style",
  "user",
  "background",
  "moderation",
  "output_format",
  "batch_size",
  "image_size",
  "num_images",
]);

export async function siliconflow(call: AdapterCall): Promise<Response> {
  const body: JsonObject = { model: call.model };
  for (const name in call.body) if (!UNKNOWN.has(name)) body[name] = call.body[name];
  const { size, image_size: native } = call.body;
  const asked = typeof size === "string" && size !== "" ? size : native;
  if (typeof asked === "string" && asked !== "" && asked !== "auto") body["image_size"] = asked;
  body["batch_size"] = pictureCount(call);
  const response = await post(call, call.url, body);
  if (response.status !== 200) return response;
  const answer = await answerOf(response);
  const list = asList(answer["images"]).length > 0 ? asList(answer["images"]) : asList(answer["data"]);
  return picturesFrom(
    call,
    list.flatMap((each) => asString(asObject(each)?.["url"]) ?? []),
  );
}
