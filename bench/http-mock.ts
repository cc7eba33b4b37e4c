// The same 1 KB answer from an ordinary HTTP server: what an upstream behind a real HTTP stack costs all subjects alike.
// Refuses to be fast by tricks: Bun.serve parses every request and writes every answer.

const ANSWER = JSON.stringify({
  id: "chatcmpl-bench",
  object: "chat.completion",
  created: 1_750_000_000,
  model: "gpt-4o",
  choices: [
    { index: 0, message: { role: "assistant", content: "word ".repeat(150) }, finish_reason: "stop" },
  ],
  usage: { prompt_tokens: 20, completion_tokens: 50, total_tokens: 70 },
});

if (import.meta.main) {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      if (request.method === "POST") await request.json();
      return new Response(ANSWER, { headers: { "content-type": "application/json" } });
    },
  });
  console.log(server.port);
}
