// A cable between a process and a server on loopback: pulled out, silent, or put into another server's port at will.
// Refuses to look into what it carries.
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";

export interface TcpSwitch {
  /** On loopback; connections to it are carried to the server. */
  port: number;
  /** New connections go to this port of loopback; those that are open stay where they are. */
  pointTo(port: number): void;
  /** Every connection is reset, and new ones are until `restore`. */
  cut(): void;
  /** Connections stay open, new ones too, and nothing arrives any more: what a network does that loses every packet. */
  silence(): void;
  /** Carries again. What was silent is reset: its other end has forgotten it long ago. */
  restore(): void;
  /** Connections that are open now. */
  readonly open: number;
  stop(): void;
}

export async function startSwitch(target: number): Promise<TcpSwitch> {
  let toPort = target;
  let state: "carries" | "cut" | "silent" = "carries";
  const pairs = new Set<{ client: Socket; server: Socket | undefined }>();

  function resetAll(): void {
    for (const { client, server } of pairs) {
      client.resetAndDestroy();
      server?.resetAndDestroy();
    }
    pairs.clear();
  }

  const listener = createServer((client) => {
    client.on("error", () => undefined);
    if (state === "cut") {
      client.resetAndDestroy();
      return;
    }
    const pair: { client: Socket; server: Socket | undefined } = { client, server: undefined };
    pairs.add(pair);
    client.on("close", () => {
      pairs.delete(pair);
      // In silence nobody hears that the other end has gone.
      if (state !== "silent") pair.server?.destroy();
    });
    if (state === "silent") return;
    const server = connect(toPort, "127.0.0.1");
    pair.server = server;
    client.setNoDelay(true);
    server.setNoDelay(true);
    server.on("error", () => client.resetAndDestroy());
    server.on("close", () => {
      if (state !== "silent") client.destroy();
    });
    client.on("data", (part) => {
      if (state !== "carries") return;
      if (!server.write(part)) client.pause();
    });
    server.on("drain", () => client.resume());
    server.on("data", (part) => {
      if (state !== "carries") return;
      if (!client.write(part)) server.pause();
    });
    client.on("drain", () => server.resume());
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  return {
    port: (listener.address() as AddressInfo).port,
    pointTo(port) {
      toPort = port;
    },
    cut() {
      state = "cut";
      resetAll();
    },
    silence() {
      state = "silent";
    },
    restore() {
      const wasSilent = state === "silent";
      state = "carries";
      if (wasSilent) resetAll();
    },
    get open() {
      return pairs.size;
    },
    stop() {
      resetAll();
      listener.close();
    },
  };
}
