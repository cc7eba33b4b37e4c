// Sockets to providers: opened through Bun's own WebSocket, and what a refused handshake said.
// Refuses to decide anything: whose fault a status is, the caller knows.
import type { WebSocket as ClientSocket, WebSocketOptions } from "bun";

/** Bun's own socket: the browser's type, which shadows it here, knows neither headers, proxies nor pauses. */
export function openSocket(url: string, options: WebSocketOptions): ClientSocket {
  return new WebSocket(url, options as unknown as string[]) as unknown as ClientSocket;
}

/** The status that a handshake was answered with; Bun puts it only into the text of the error. */
export function handshakeStatus(message: string): number | undefined {
  const found = /status code:? (\d{3})\b/.exec(message);
  return found ? Number(found[1]) : undefined;
}
