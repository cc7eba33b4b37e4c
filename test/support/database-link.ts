// The way of one node to its database: a TCP connection of a test's own that can be frozen, cut and mended, for this node alone.
// Refuses to look into what passes.
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";

export interface DatabaseLink {
  /** The database's URL by way of the link. */
  url: string;
  /** Nothing passes any more and nobody is told: what a lost network looks like. */
  freeze(): void;
  /** Ends all connections and refuses new ones: what a server looks like that is gone. */
  cut(): void;
  /** New connections pass; what was frozen goes on where it stood. */
  mend(): void;
  stop(): void;
}

export async function startDatabaseLink(databaseUrl: string): Promise<DatabaseLink> {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  let state: "open" | "frozen" | "cut" = "open";
  const server = createServer((near) => {
    near.on("error", () => undefined);
    if (state === "cut") return void near.destroy();
    const far = connect(Number(target.port), target.hostname);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("error", () => undefined);
      from.on("data", (bytes) => void to.write(bytes));
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      if (state === "frozen") from.pause();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = new URL(databaseUrl);
  url.hostname = "127.0.0.1";
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    freeze() {
      state = "frozen";
      for (const socket of sockets) socket.pause();
    },
    cut() {
      state = "cut";
      for (const socket of sockets) socket.destroy();
    },
    mend() {
      state = "open";
      for (const socket of sockets) socket.resume();
    },
    stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
