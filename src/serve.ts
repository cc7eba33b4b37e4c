// Listens, keeps the process alive through stray rejections, and drains on SIGTERM and SIGINT.
// Refuses new connections while draining; running answers get a bounded time to finish.
import type { AnyElysia } from "elysia";
import type { Services } from "./app.ts";
import type { Env } from "./env.ts";

const DRAIN_LIMIT_MS = 30_000;

export interface Running {
  port: number;
  stop(): Promise<void>;
}

export async function serve(env: Env, services: Services, app: AnyElysia): Promise<Running> {
  const { logger } = services.deps;
  // One unhandled rejection would end the process and with it every open stream.
  process.on("unhandledRejection", (reason) => {
    logger.error("unhandled rejection", { error: reason instanceof Error ? reason.stack : String(reason) });
  });
  await new Promise<void>((resolve) => {
    app.listen({ port: env.port, hostname: env.host, idleTimeout: 0, reusePort: false }, () => resolve());
  });
  const port = app.server?.port ?? env.port;
  logger.info("serving", {
    url: `http://${env.host === "0.0.0.0" ? "localhost" : env.host}:${port}`,
    database: services.deps.db.kind,
    version: services.deps.version,
  });

  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= (async () => {
      const limit = setTimeout(() => process.exit(1), DRAIN_LIMIT_MS);
      await app.server?.stop(false);
      await services.close();
      clearTimeout(limit);
    })();
    return stopping;
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => {
      logger.info("draining", { signal });
      stop().then(
        () => process.exit(0),
        () => process.exit(1),
      );
    });
  }
  return { port, stop };
}
