// A fetch worker on loopback as operators run them elsewhere: it writes down what it is asked for and answers in the place
// of hosts that do not exist. Refuses whoever does not know its key, as real ones do.

interface Asked {
  url: string;
  key: string;
  method?: string;
  headers?: Record<string, string>;
  body?: unknown;
}

export interface FakeWorker {
  /** http://127.0.0.1:port */
  url: string;
  /** What came, in order; those with a wrong key too. */
  asked: Asked[];
  /** What stands at an address; 404 where nothing does. */
  answers: Map<string, () => Response>;
  stop(): Promise<void>;
}

export function startFakeWorker(key: string): FakeWorker {
  const asked: Asked[] = [];
  const answers = new Map<string, () => Response>();
  const refuse = (error: string, status: number) => Response.json({ success: false, error }, { status });
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      if (request.method !== "POST" || new URL(request.url).pathname !== "/")
        return refuse("Only POST method is allowed", 405);
      const sent = (await request.json()) as Asked;
      asked.push(sent);
      if (sent.key !== key) return refuse("Unauthorized key", 403);
      return answers.get(sent.url)?.() ?? new Response("nothing there", { status: 404 });
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, asked, answers, stop: () => server.stop(true) };
}
