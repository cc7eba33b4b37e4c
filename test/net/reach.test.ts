// Guarantees of the way to upstreams: closed networks stay closed to channels unless somebody opened them, a name is
// judged once and cannot change its mind in between, and what is known costs no lookup.
import { describe, expect, spyOn, test } from "bun:test";
import { createReach } from "../../src/net/reach.ts";
import type { EgressTarget } from "../../src/net/reach.ts";
import { EnvError, readEnv } from "../../src/env.ts";
import { Failure } from "../../src/shared/failures.ts";

const OWN = readEnv({}).upstreamNetworks;

interface Given {
  own?: readonly string[];
  /** What the name server answers, call after call; the last answer stays. undefined = it knows no such name. */
  names?: (readonly string[] | undefined)[];
  setting?: Record<string, unknown>;
  baseUrl?: string;
}

function reachOf({ own = OWN, names = [["93.184.216.34"]], setting = {}, baseUrl }: Given) {
  let nowMs = 0;
  let lookups = 0;
  const reach = createReach(own, { monotonicMs: () => nowMs }, () => {
    const answer = names[Math.min(lookups++, names.length - 1)];
    return answer ? Promise.resolve(answer) : Promise.reject(new Error("unknown name"));
  });
  const channels = new Map<string, { baseUrl: string; setting: Record<string, unknown> }>();
  return {
    lookups: () => lookups,
    later: (ms: number) => void (nowMs += ms),
    raw(url: string) {
      const named = baseUrl ?? url;
      let channel = channels.get(named);
      if (!channel) channels.set(named, (channel = { baseUrl: named, setting }));
      return reach.target(url, channel);
    },
    async target(url: string): Promise<EgressTarget | string> {
      try {
        return await this.raw(url);
      } catch (error) {
        return error instanceof Failure ? error.code : String(error);
      }
    },
  };
}

const CLOSED = "channel_address_closed";

describe("with what is open by default", () => {
  test.each([
    ["http://127.0.0.1:11434/v1/chat/completions"],
    ["http://[::1]:11434/v1"],
    ["http://10.1.2.3/v1"],
    ["https://192.168.1.5:8443/v1"],
    ["http://172.20.0.2:8000"],
    ["http://[fd12:3456::1]/v1"],
    ["https://1.1.1.1/v1"],
    ["wss://1.1.1.1/v1/realtime?model=x"],
  ])("%s is reached as it stands", async (url) => {
    expect(await reachOf({}).target(url)).toEqual({ url });
  });

  test.each([
    ["cloud metadata", "http://169.254.169.254/latest/meta-data/"],
    ["in decimal", "http://2852039166/"],
    ["in hexadecimal", "http://0xa9fea9fe/"],
    ["mapped into IPv6", "http://[::ffff:169.254.169.254]/"],
    ["IPv4-compatible", "http://[::a9fe:a9fe]/"],
    ["AWS over IPv6, in spite of the private range", "http://[fd00:ec2::254]/"],
    ["Google over IPv6", "http://[fd20:ce::254]/"],
    ["Azure's host, at a public address", "http://168.63.129.16/metadata"],
    ["Alibaba's", "http://100.100.100.200/"],
    ["link-local", "http://[fe80::1]/v1"],
    ["carrier-grade NAT", "http://100.64.0.1/v1"],
    ["this host", "http://0.0.0.0:3000/v1"],
    ["multicast", "http://224.0.0.1/"],
    ["a backslash before the path", "http://169.254.169.254\\v1"],
    ["no web address", "file:///etc/passwd"],
  ])("%s is closed", async (_, url) => {
    expect(await reachOf({}).target(url)).toBe(CLOSED);
  });

  test.each([
    ["a name of a closed network", [["169.254.169.254"]]],
    ["a name with one closed address among open ones", [["93.184.216.34", "169.254.169.254"]]],
  ])("%s is closed", async (_, names) => {
    expect(await reachOf({ names }).target("https://innocent.example/v1")).toBe(CLOSED);
  });

  test("the operator's networks are open to the host that the channel names, not to what an answer points to", async () => {
    const asked = reachOf({ baseUrl: "https://api.example/v1" });
    expect(await asked.target("https://api.example/v1/chat")).toEqual({ url: "https://api.example/v1/chat" });
    expect(await asked.target("http://127.0.0.1:6379/")).toBe(CLOSED);
    const allowing = reachOf({ baseUrl: "https://api.example", setting: { allow_networks: ["127.0.0.1"] } });
    expect(await allowing.target("http://127.0.0.1:6379/")).toEqual({ url: "http://127.0.0.1:6379/" });
  });
});

describe("with the operator's networks closed", () => {
  const own = readEnv({ UPSTREAM_NETWORKS: "none" }).upstreamNetworks;

  test.each([
    ["http://127.0.0.1:11434"],
    ["http://10.0.0.1"],
    ["http://[::ffff:10.0.0.1]"],
    ["http://[::1]"],
  ])("%s is refused, and opened by the channel's own list only", async (url) => {
    expect(await reachOf({ own }).target(url)).toBe(CLOSED);
    const allow_networks = ["127.0.0.0/8", "10.0.0.0/8", "::1"];
    expect(await reachOf({ own, setting: { allow_networks } }).target(url)).toEqual({ url });
  });

  test("a range opens no metadata service; an entry that names it does", async () => {
    const url = "http://169.254.169.254/v1";
    for (const entry of ["169.254.0.0/16", "0.0.0.0/0", "169.254.169.254/32"])
      expect(await reachOf({ own, setting: { allow_networks: [entry] } }).target(url)).toBe(CLOSED);
    expect(await reachOf({ own, setting: { allow_networks: ["169.254.169.254"] } }).target(url)).toEqual({
      url,
    });
  });

  test("the outgoing proxy of a channel is an address like any other", async () => {
    const url = "https://api.example/v1";
    const behind = (proxy: string, more: object = {}) =>
      reachOf({ own, setting: { proxy, ...more } }).target(url);
    expect(await behind("http://127.0.0.1:7890")).toBe(CLOSED);
    expect(await behind("socks5://10.0.0.1:1080")).toBe(CLOSED);
    expect(await behind("http://127.0.0.1:7890", { allow_networks: ["127.0.0.1"] })).toEqual({ url });
    expect(await reachOf({ setting: { proxy: "http://127.0.0.1:7890" } }).target(url)).toEqual({ url });
  });

  test("behind a channel's proxy the name server here has no say; addresses are judged all the same", async () => {
    const setting = { proxy: "http://93.184.216.34:8080" };
    const asked = reachOf({ own, setting, names: [["127.0.0.1"]] });
    expect(await asked.target("http://blocked-here.example/v1")).toEqual({
      url: "http://blocked-here.example/v1",
    });
    expect(await asked.target("http://127.0.0.1/v1")).toBe(CLOSED);
    expect(asked.lookups()).toBe(0);
  });

  test("behind a proxy of the whole process names stay names", async () => {
    const reach = createReach(own, { monotonicMs: () => 0 }, () => Promise.resolve(["93.184.216.34"]), false);
    const channel = { baseUrl: "", setting: {} };
    expect(await reach.target("http://api.example/v1", channel)).toEqual({ url: "http://api.example/v1" });
    expect([readEnv({}).hasProxy, readEnv({ HTTP_PROXY: "http://p:1" }).hasProxy]).toEqual([false, true]);
  });

  test("a name is connected to at the address that was judged, whatever the name server says next", async () => {
    const asked = reachOf({ own, names: [["93.184.216.34"], ["127.0.0.1"]] });
    const target = { url: "http://93.184.216.34:8080/v1/x?y=1", host: "rebind.example:8080" };
    expect(await asked.target("http://rebind.example:8080/v1/x?y=1")).toEqual(target);
    expect(await asked.target("http://rebind.example:8080/v1/x?y=1")).toEqual(target);
    expect(asked.lookups()).toBe(1);
    // The judgement ends, and the next one sees the trick.
    asked.later(31_000);
    expect(await asked.target("http://rebind.example:8080/v1/x?y=1")).toBe(CLOSED);
  });

  test("with TLS the certificate binds the name, which is kept; IPv6 addresses are written in brackets", async () => {
    expect(await reachOf({ own }).target("https://api.example/v1")).toEqual({
      url: "https://api.example/v1",
    });
    expect(await reachOf({ own, names: [["2606:4700::1111"]] }).target("http://six.example/v1")).toEqual({
      url: "http://[2606:4700::1111]/v1",
      host: "six.example",
    });
  });
});

test("what was judged answers at once, without a lookup and without a promise", async () => {
  const asked = reachOf({ baseUrl: "https://api.example" });
  await asked.raw("https://api.example/v1/chat/completions");
  const again = asked.raw("https://api.example/v1/embeddings");
  expect(again).not.toBeInstanceOf(Promise);
  expect(again).toEqual({ url: "https://api.example/v1/embeddings" });
  expect(asked.lookups()).toBe(1);
  const local = reachOf({ baseUrl: "http://127.0.0.1:1" });
  await local.raw("http://127.0.0.1:1/a");
  local.later(1e12);
  expect(local.raw("http://127.0.0.1:1/b")).toEqual({ url: "http://127.0.0.1:1/b" });
});

test("a name that is unknown here is left to whoever resolves it, and looked up again soon", async () => {
  const asked = reachOf({ names: [undefined, ["169.254.169.254"]] });
  expect(await asked.target("https://only-the-proxy-knows.example/v1")).toEqual({
    url: "https://only-the-proxy-knows.example/v1",
  });
  asked.later(6_000);
  expect(await asked.target("https://only-the-proxy-knows.example/v1")).toBe(CLOSED);
});

test("a name whose servers are silent is unknown after ten seconds", async () => {
  const asked: number[] = [];
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  const told = spyOn(AbortSignal, "timeout").mockImplementation((ms) => {
    asked.push(ms);
    return timeout(1);
  });
  try {
    const reach = createReach(OWN, { monotonicMs: () => 0 }, () => new Promise<never>(() => {}));
    const url = "https://silent.example/v1";
    expect(await reach.target(url, { baseUrl: url, setting: {} })).toEqual({ url });
    expect(await reach.opens(url)).toBe(false);
    expect(asked).toEqual([10_000, 10_000]);
  } finally {
    told.mockRestore();
  }
});

describe("UPSTREAM_NETWORKS", () => {
  test("takes words, addresses and ranges", () => {
    expect(readEnv({ UPSTREAM_NETWORKS: "loopback, 100.64.0.0/10,10.0.0.7" }).upstreamNetworks).toEqual([
      "127.0.0.0/8",
      "::1/128",
      "100.64.0.0/10",
      "10.0.0.7",
    ]);
    expect(readEnv({ UPSTREAM_NETWORKS: "none" }).upstreamNetworks).toEqual([]);
  });
  test.each(["lan", "10.0.0.0/33", "10.0.0", "toString"])("%s stops the start, by name", (value) => {
    expect(() => readEnv({ UPSTREAM_NETWORKS: value })).toThrow(EnvError);
    expect(() => readEnv({ UPSTREAM_NETWORKS: value })).toThrow("UPSTREAM_NETWORKS");
  });
});
