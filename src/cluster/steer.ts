// Which of the sockets on one port gets new connections, told to the kernel: away from a worker before its socket closes, since
// whatever has arrived at a socket and was not taken from it is reset with it (Linux, "reuseport groups": a classic BPF
// program of the group answers with a socket's place in it, any other number leaves the choice to the kernel).
// Refuses to fail: where the system does not let it, connections are spread as before, and a few may be reset.
import { dlopen, FFIType, ptr } from "bun:ffi";
import { readdirSync } from "node:fs";

const LIBRARIES = ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"];
const SOL_SOCKET = 1;
const SO_ACCEPTCONN = 30;
const SO_ATTACH_REUSEPORT_CBPF = 51;

/** Instructions: code, jump if true, jump if false, operand (linux/filter.h). */
type Instruction = readonly [code: number, jt: number, jf: number, k: number];
const LOAD = 0x20;
const MODULO = 0x94;
const JUMP_FROM = 0x35;
const ADD = 0x04;
const ANSWER = 0x16;
const ANSWER_NUMBER = 0x06;
/** SKF_AD_OFF + SKF_AD_RANDOM. */
const RANDOM = 0xff_ff_f0_00 + 56;
const NO_SOCKET = 0xff_ff_ff_ff;

const only = (place: number): Instruction[] => [[ANSWER_NUMBER, 0, 0, place]];

/** Any of so many sockets but the one. */
const allBut = (place: number, among: number): Instruction[] => [
  [LOAD, 0, 0, RANDOM],
  [MODULO, 0, 0, among - 1],
  [JUMP_FROM, 0, 1, place],
  [ADD, 0, 0, 1],
  [ANSWER, 0, 0, 0],
];

interface SocketCalls {
  getsockopt(fd: number, level: number, name: number, value: Buffer, size: Buffer): number;
  setsockopt(fd: number, level: number, name: number, value: Buffer, size: number): number;
}

function socketCalls(): SocketCalls | undefined {
  const { i32, ptr: pointer } = FFIType;
  for (const name of LIBRARIES) {
    try {
      return dlopen(name, {
        getsockopt: { args: [i32, i32, i32, pointer, pointer], returns: i32 },
        setsockopt: { args: [i32, i32, i32, pointer, i32], returns: i32 },
      }).symbols as unknown as SocketCalls;
    } catch {
      // Another system's library.
    }
  }
  return undefined;
}

/** The socket that this process listens on: it has one. */
function listener(calls: SocketCalls): number | undefined {
  const value = Buffer.alloc(4);
  const size = Buffer.alloc(4);
  return readdirSync("/proc/self/fd")
    .map(Number)
    .find((fd) => {
      size.writeInt32LE(4);
      value.writeInt32LE(0);
      return calls.getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, value, size) === 0 && value.readInt32LE() === 1;
    });
}

function program(calls: SocketCalls, fd: number, instructions: readonly Instruction[]): boolean {
  const filter = Buffer.alloc(8 * instructions.length);
  for (const [at, [code, jt, jf, k]] of instructions.entries()) {
    filter.writeUInt16LE(code, 8 * at);
    filter.writeUInt8(jt, 8 * at + 2);
    filter.writeUInt8(jf, 8 * at + 3);
    filter.writeUInt32LE(k, 8 * at + 4);
  }
  const head = Buffer.alloc(16);
  head.writeUInt16LE(instructions.length, 0);
  head.writeBigUInt64LE(BigInt(ptr(filter)), 8);
  return calls.setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, head, head.length) === 0;
}

/** New connections go to all sockets of the port again; each worker says so when it begins to listen. */
export function steerToAll(): void {
  const calls = socketCalls();
  const fd = calls && listener(calls);
  if (calls && fd !== undefined) program(calls, fd, only(NO_SOCKET));
}

/**
 * New connections go to the others of so many sockets. `isOwn` makes a connection to the port and says whether this process
 * was the one to take it: nothing else tells a socket's place. False: they go on coming here as well.
 */
export async function steerAway(among: number, isOwn: () => Promise<boolean>): Promise<boolean> {
  const calls = socketCalls();
  const fd = calls && listener(calls);
  if (!calls || fd === undefined || among < 2) return false;
  for (let place = 0; place < among; place++) {
    if (!program(calls, fd, only(place))) return false;
    if (await isOwn()) return program(calls, fd, allBut(place, among));
  }
  program(calls, fd, only(NO_SOCKET));
  return false;
}

const LOOK_MS = 2000;

/** Which worker takes a connection to the port: `/healthz` tells (api/probes.ts). Undefined when nobody does. */
export async function workerAt(hostname: string, port: number): Promise<number | undefined> {
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  let said = "";
  const timer = setTimeout(() => resolve(undefined), LOOK_MS);
  const socket = await Bun.connect({
    hostname,
    port,
    socket: {
      data(_, bytes) {
        said += bytes.toString();
        const worker = /"worker":(\d+)/.exec(said)?.[1];
        if (worker !== undefined) resolve(Number(worker));
      },
      close: () => resolve(undefined),
      error: () => resolve(undefined),
    },
  }).catch(() => undefined);
  socket?.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const worker = socket ? await promise : undefined;
  clearTimeout(timer);
  socket?.end();
  return worker;
}
