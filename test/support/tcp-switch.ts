// A cable between a process and a server on loopback: pulled out, silent, held, or put into another server's port at will. It is
// a process of its own, so that what it carries does not wait for whatever the test is doing.
// Refuses to look into what it carries.
import { join } from "node:path";
import type { SwitchNews, SwitchOrder } from "./tcp-switch-process.ts";
import { withParent } from "./server.ts";

export interface TcpSwitch {
  /** On loopback; connections to it are carried to the server. */
  port: number;
  /** New connections go to this port of loopback; those that are open stay where they are. */
  pointTo(port: number): Promise<void>;
  /** Every connection is reset, and new ones are until `restore`. */
  cut(): Promise<void>;
  /** Connections stay open, new ones too, and nothing arrives any more: what a network does that loses every packet. */
  silence(): Promise<void>;
  /** Nothing arrives on connections that are open, for ever; new ones are carried: what a firewall does that has forgotten them. */
  forget(): Promise<void>;
  /** Nothing arrives, and nothing is lost: `restore` goes on where it stood. */
  hold(): Promise<void>;
  /** Carries again. What was silent is reset: its other end has forgotten it long ago. */
  restore(): Promise<void>;
  stop(): Promise<void>;
}

/** A database's URL by way of a cable. */
export function throughSwitch({ port }: Pick<TcpSwitch, "port">, databaseUrl: string): string {
  const url = new URL(databaseUrl);
  url.hostname = "127.0.0.1";
  url.port = String(port);
  return url.href;
}

/** A cable of one's own to a database, and its URL by way of it. */
export async function startSwitchTo(databaseUrl: string): Promise<TcpSwitch & { url: string }> {
  const cable = await startSwitch(Number(new URL(databaseUrl).port));
  return { ...cable, url: throughSwitch(cable, databaseUrl) };
}

export async function startSwitch(target: number): Promise<TcpSwitch> {
  const orders: (() => void)[] = [];
  const started = Promise.withResolvers<number>();
  const child = Bun.spawn(
    [...withParent(), process.execPath, join(import.meta.dir, "tcp-switch-process.ts"), String(target)],
    {
      stdin: "ignore",
      stdout: "ignore",
      stderr: "inherit",
      ipc(news: SwitchNews) {
        if ("port" in news) started.resolve(news.port);
        else orders[news.done]?.();
      },
    },
  );
  const order = (act: SwitchOrder["act"], port?: number) =>
    new Promise<void>((resolve) => {
      const number = orders.push(resolve) - 1;
      child.send({ number, act, ...(port === undefined ? {} : { port }) } satisfies SwitchOrder);
    });
  return {
    port: await started.promise,
    pointTo: (port) => order("point", port),
    cut: () => order("cut"),
    silence: () => order("silence"),
    forget: () => order("forget"),
    hold: () => order("hold"),
    restore: () => order("restore"),
    async stop() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
