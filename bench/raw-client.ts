// An HTTP/1.1 client with nothing in it: prepared request bytes out, status and body bytes in, over keep-alive TCP.
// Refuses redirects, compression, TLS and patience: it exists so that the load costs less than what it measures.

import type { Socket } from "bun";

export interface Exchange {
  onHead?(status: number): void;
  onBody?(bytes: Buffer): void;
  /** The message is complete. */
  onEnd(): void;
  /** The connection ended before the message did. */
  onBroken(reason: string): void;
}

export interface Connection {
  isOpen(): boolean;
  /** One at a time: the next may start in or after the last one's onEnd. */
  exchange(request: Uint8Array, exchange: Exchange): void;
  pause(): void;
  resume(): void;
  close(): void;
}

type Phase = "head" | "fixed" | "size" | "data" | "data-end" | "trailer" | "until-close";

interface State {
  current: Exchange | undefined;
  phase: Phase;
  /** Bytes of the head or of a chunk's size line that came so far. */
  carry: string;
  left: number;
  isOpen: boolean;
  keepAlive: boolean;
}

function finish(socket: Socket<State>): void {
  const state = socket.data;
  const done = state.current;
  state.current = undefined;
  state.phase = "head";
  state.carry = "";
  if (!state.keepAlive) {
    state.isOpen = false;
    socket.end();
  }
  done?.onEnd();
}

/** Reads the head; returns the index of the first body byte, or -1 when more is needed. */
function readHead(state: State, bytes: Buffer): number {
  const before = state.carry.length;
  state.carry += bytes.toString("latin1");
  const end = state.carry.indexOf("\r\n\r\n");
  if (end < 0) return -1;
  const head = state.carry.slice(0, end).toLowerCase();
  state.carry = "";
  const status = Number(head.slice(9, 12));
  state.keepAlive = !head.includes("\r\nconnection: close");
  if (head.includes("\r\ntransfer-encoding: chunked")) state.phase = "size";
  else {
    const length = /\r\ncontent-length: *(\d+)/.exec(head)?.[1];
    state.phase = length === undefined ? "until-close" : "fixed";
    state.left = Number(length ?? 0);
  }
  state.current?.onHead?.(status);
  return end + 4 - before;
}

function consume(socket: Socket<State>, bytes: Buffer): void {
  const state = socket.data;
  let at = 0;
  while (state.current) {
    if (state.phase === "head") {
      const start = readHead(state, bytes.subarray(at));
      if (start < 0) return;
      at += start;
      if (state.phase === ("fixed" as Phase) && state.left === 0) finish(socket);
    } else if (at >= bytes.length) {
      return;
    } else if (state.phase === "fixed" || state.phase === "data") {
      const part = bytes.subarray(at, at + state.left);
      at += part.length;
      state.left -= part.length;
      state.current.onBody?.(part);
      if (state.left === 0 && state.phase === "fixed") finish(socket);
      else if (state.left === 0) state.phase = "data-end";
    } else if (state.phase === "until-close") {
      state.current.onBody?.(bytes.subarray(at));
      return;
    } else {
      const newline = bytes.indexOf(10, at);
      if (newline < 0) {
        state.carry += bytes.toString("latin1", at);
        return;
      }
      const line = (state.carry + bytes.toString("latin1", at, newline)).trim();
      state.carry = "";
      at = newline + 1;
      if (state.phase === "data-end") state.phase = "size";
      else if (state.phase === "trailer") {
        if (line === "") finish(socket);
      } else {
        state.left = Number.parseInt(line, 16);
        state.phase = state.left === 0 ? "trailer" : "data";
      }
    }
  }
}

function lose(socket: Socket<State>, reason: string): void {
  const state = socket.data;
  state.isOpen = false;
  const current = state.current;
  state.current = undefined;
  if (current && state.phase === "until-close") current.onEnd();
  else current?.onBroken(reason);
}

/** Opens one connection; rejects when nobody listens. */
export async function connect(hostname: string, port: number): Promise<Connection> {
  const socket = await Bun.connect<State>({
    hostname,
    port,
    data: { current: undefined, phase: "head", carry: "", left: 0, isOpen: true, keepAlive: true },
    socket: {
      open: (opened) => void opened.setNoDelay(true),
      data: (from, bytes) => consume(from, bytes),
      close: (from) => lose(from, "closed"),
      error: (from, error) => lose(from, error.message),
    },
  });
  return {
    isOpen: () => socket.data.isOpen,
    exchange(request, exchange) {
      socket.data.current = exchange;
      const written = socket.write(request);
      if (written < request.length) lose(socket, "the socket did not take the request");
    },
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    close: () => socket.terminate(),
  };
}
