// The least that a gateway on this runtime can be: Bun's server in front, Bun's fetch behind, nothing between. What the
// gateway needs beyond it is its own; what this needs beyond nginx is the runtime's.
// Refuses to check, count or write anything.

const [upstream = ""] = process.argv.slice(2);

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  idleTimeout: 0,
  async fetch(request) {
    const { pathname } = new URL(request.url);
    const answer = await fetch(upstream + pathname, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: await request.bytes(),
      signal: request.signal,
    });
    const type = answer.headers.get("content-type") ?? "";
    const body = type.includes("event-stream") ? answer.body : await answer.bytes();
    return new Response(body, { status: answer.status, headers: { "content-type": type } });
  },
});
console.log(server.port);
