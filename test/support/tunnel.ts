// An outgoing proxy on loopback that opens tunnels (CONNECT) and remembers where to.
// Refuses nothing, and forwards no plain requests.
import { createServer } from "node:http";
import { connect } from "node:net";
import type { AddressInfo } from "node:net";

export interface Tunnel {
  url: string;
  /** Host and port of every tunnel that was asked for. */
  tunnels: string[];
  stop: () => void;
}

export async function startTunnel(): Promise<Tunnel> {
  const tunnels: string[] = [];
  const server = createServer();
  server.on("connect", (request, client, head) => {
    tunnels.push(request.url ?? "");
    const [host = "", port = ""] = (request.url ?? "").split(":");
    const target = connect(Number(port), host, () => {
      client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      target.write(head);
      target.pipe(client);
      client.pipe(target);
    });
    target.on("error", () => client.destroy());
    client.on("error", () => target.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    tunnels,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}
