// Usage that is put right in answers: wherever a stream is cut, and nothing else of it.
import { expect, test } from "bun:test";
import { correctedAnswer } from "../../src/providers/corrected-usage.ts";

const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 1015 };
const RIGHT = { ...USAGE, completion_tokens: 1005 };

const streamOf = (bytes: Uint8Array, size: number): Response => {
  let at = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, (at += size)));
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream", "x-served-by": "a" } });
};

test("a stream has its usage corrected wherever it is cut, and is otherwise as it came", async () => {
  const words = `: keep-alive\r\n\r\ndata: {"choices":[{"delta":{"content":"wé"}}]}\n\nevent: x\n`;
  const end = (usage: unknown): string => `data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]`;
  const bytes = new TextEncoder().encode(words + end(USAGE));
  for (const size of [1, 7, 64, bytes.length]) {
    const answer = await correctedAnswer(streamOf(bytes, size));
    expect([size, answer.headers.get("x-served-by"), await answer.text()]).toEqual([
      size,
      "a",
      words + end(RIGHT),
    ]);
  }
});

test("a whole answer likewise; what adds up, and what is no answer, stays as it is", async () => {
  const said = async (text: string) => (await correctedAnswer(new Response(text))).text();
  expect(JSON.parse(await said(JSON.stringify({ id: "1", usage: USAGE })))).toEqual({
    id: "1",
    usage: RIGHT,
  });
  for (const text of [
    `{ "usage": ${JSON.stringify(RIGHT)} }`,
    `{ "usage": {"prompt_tokens": 7, "total_tokens": 7} }`,
    `<p>"total_tokens"</p>`,
    "",
  ])
    expect(await said(text)).toBe(text);
});
