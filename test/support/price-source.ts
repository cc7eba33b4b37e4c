// A host of price lists on loopback that answers as it is told by the path: well, or in one of the ways in which hosts misbehave.
import { createServer } from "node:http";
import type { IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";

export interface PriceHost {
  /** http://127.0.0.1:port */
  url: string;
  /** What each request brought, the latest last. */
  seen: { path: string; headers: IncomingHttpHeaders }[];
  /** JSON that a path answers with from now on. */
  serve(path: string, value: unknown): void;
  /** Bytes of bodies that have left, with what the connection still holds. */
  sentBytes(): number;
  close(): void;
}

const PART = "x".repeat(64 * 1024);
/** More than a comparison reads, in a fiftieth of that. */
const BOMB = gzipSync(`[${"0,".repeat(20 * 1024 * 1024)}0]`);

export async function startPriceHost(): Promise<PriceHost> {
  const values = new Map<string, unknown>();
  const seen: PriceHost["seen"] = [];
  let sent = 0;
  const server = createServer((request, response) => {
    const { url = "", headers } = request;
    seen.push({ path: url, headers });
    const { pathname, searchParams } = new URL(url, "http://x");
    const to = searchParams.get("to");
    const json = (text: string) => response.setHeader("content-type", "application/json").end(text);
    if (values.has(pathname)) json(JSON.stringify(values.get(pathname)));
    else if (to !== null) response.writeHead(302, { location: to }).end();
    else if (pathname === "/loop") response.writeHead(302, { location: "/loop" }).end();
    else if (pathname === "/slow") response.flushHeaders();
    else if (pathname === "/drip") response.write("[");
    else if (pathname === "/bomb") response.setHeader("content-encoding", "gzip").end(BOMB);
    else if (pathname === "/dense") json(`[${"[],".repeat(3_000_000)}[]]`);
    else if (pathname === "/html")
      response.setHeader("content-type", "text/html; charset=utf-8").end("<!doctype html><p>Hello</p>");
    else if (pathname === "/html-as-json") json("  <html><body>Not what it says</body></html>");
    else if (pathname === "/hidden") response.writeHead(403).end('{"success":false}');
    else if (pathname === "/broken") response.writeHead(500).end("{}");
    else if (pathname === "/empty") json("");
    else if (pathname === "/truncated") json('{"data":{"model_ratio":{"gpt-4o":1.2');
    else if (pathname === "/latin1") response.end(Buffer.from([0x7b, 0xff, 0x7d]));
    else if (pathname === "/wrong") json('{"data":"soon"}');
    else if (pathname === "/list") json("[1,2,3]");
    else if (pathname === "/huge") {
      const more = () => {
        while (!response.destroyed && response.write(PART)) sent += PART.length;
        sent += PART.length;
      };
      response.on("drain", more);
      more();
    } else response.writeHead(404).end("no such list");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    serve: (path, value) => void values.set(path, value),
    sentBytes: () => sent,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
