// weir health: whether the server on this machine lives, or takes calls, for supervisors and health checks of containers.
// Refuses to ask anywhere else.

export interface HealthContext {
  host: string;
  port: number;
  ask: (url: string, options: { signal: AbortSignal }) => Promise<Response>;
  say: (text: string) => void;
  complain: (text: string) => void;
}

/** Shorter than what supervisors wait. */
const LIMIT_MS = 4000;

/** Answers the exit code: 0 yes, 1 no or no answer, 2 called wrongly. */
export async function healthCommand(context: HealthContext, args: readonly string[]): Promise<number> {
  const { host, port, ask, say, complain } = context;
  if (args.some((arg) => arg !== "--ready")) {
    complain("usage: weir health [--ready]");
    return 2;
  }
  // Listening everywhere is listening here.
  const everywhere: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "[::1]" };
  const place = everywhere[host] ?? (host.includes(":") ? `[${host}]` : host);
  try {
    const signal = AbortSignal.timeout(LIMIT_MS);
    const answer = await ask(`http://${place}:${port}${args.length > 0 ? "/readyz" : "/healthz"}`, {
      signal,
    });
    say((await answer.text()).trim());
    return answer.ok ? 0 : 1;
  } catch (error) {
    complain(`no answer on port ${port}: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  }
}
