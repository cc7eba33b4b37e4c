// Zhipu's CogView: OpenAI's form, but pictures come as addresses only; they are inlined where the client asked so.
// The row refuses more than one picture.
import { asList, asObject, asString } from "../../protocol/json.ts";
import type { AdapterCall } from "../adapter.ts";
import { answerOf, post } from "../adapter-kit.ts";
import { picturesFrom } from "./pictures.ts";

export async function zhipuPictures(call: AdapterCall): Promise<Response> {
  const { response_format: _format, ...body } = call.body;
  const response = await post(call, call.url, body);
  if (response.status !== 200) return response;
  const list = asList((await answerOf(response))["data"]);
  return picturesFrom(
    call,
    list.flatMap((each) => asString(asObject(each)?.["url"]) ?? []),
  );
}
