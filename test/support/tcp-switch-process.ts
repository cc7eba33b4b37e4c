// The process behind tcp-switch.ts: carries bytes between its own port and a server on loopback, and does what it is told.
// Refuses to live longer than the test that started it.
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";

/** What the test tells; answered by `done` with the same number. */
export interface SwitchOrder {
  number: number;
  act: "cut" | "silence" | "forget" | "hold" | "restore" | "point";
  /** Of the server, where connections are pointed elsewhere. */
  port?: number;
}

/** What the process tells: first its port, then each order that is done. */
export type SwitchNews = { port: number } | { done: number };

interface Pair {
  client: Socket;
  server: Socket | undefined;
}

function carry(firstTarget: number): (order: SwitchOrder) => void {
  let target = firstTarget;
  let state: "carries" | "cut" | "silent" | "held" = "carries";
  const pairs = new Set<Pair>();
  /** Pairs of which nothing is carried any more, and whose ends hear nothing of each other. */
  const forgotten = new Set<Pair>();

  function reset(which: Set<Pair>): void {
    eachSocket(which, (socket) => socket.resetAndDestroy());
    which.clear();
  }

  function eachSocket(which: Set<Pair>, act: (socket: Socket) => void): void {
    for (const { client, server } of which) {
      act(client);
      if (server) act(server);
    }
  }

  function join(pair: Pair, from: Socket, to: Socket): void {
    from.setNoDelay(true);
    from.on("data", (part) => {
      // What is lost is lost: in silence nothing is kept for later.
      if (state === "carries" && !forgotten.has(pair) && !to.write(part)) from.pause();
    });
    to.on("drain", () => {
      if (state !== "held") from.resume();
    });
    if (state === "held") from.pause();
    from.on("close", () => {
      // In silence nobody hears that the other end has gone.
      if (state !== "silent" && !forgotten.has(pair)) to.destroy();
    });
  }

  const listener = createServer((client) => {
    client.on("error", () => undefined);
    if (state === "cut") {
      client.resetAndDestroy();
      return;
    }
    const pair: Pair = { client, server: undefined };
    pairs.add(pair);
    client.on("close", () => pairs.delete(pair));
    if (state === "silent") return;
    const server = connect(target, "127.0.0.1");
    pair.server = server;
    server.on("error", () => {
      if (!forgotten.has(pair)) client.resetAndDestroy();
    });
    join(pair, client, server);
    join(pair, server, client);
  });
  listener.listen(0, "127.0.0.1", () => tell({ port: (listener.address() as AddressInfo).port }));

  return ({ act, port }) => {
    if (act === "point") target = port ?? target;
    else if (act === "silence") state = "silent";
    else if (act === "forget") {
      for (const pair of pairs) forgotten.add(pair);
      pairs.clear();
    } else if (act === "hold") {
      state = "held";
      eachSocket(pairs, (socket) => socket.pause());
    } else {
      const isReset = act === "cut" || state === "silent";
      state = act === "cut" ? "cut" : "carries";
      reset(forgotten);
      if (isReset) reset(pairs);
      else eachSocket(pairs, (socket) => socket.resume());
    }
  };
}

const tell = (news: SwitchNews) => void process.send?.(news);

if (import.meta.main) {
  const obey = carry(Number(process.argv[2]));
  process.on("message", (order: SwitchOrder) => {
    obey(order);
    tell({ done: order.number });
  });
  process.on("disconnect", () => process.exit(0));
}
