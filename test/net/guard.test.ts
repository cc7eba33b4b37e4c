// Guarantees of the way out: closed networks stay closed in every spelling, through redirects and name tricks, and what
// comes back is bounded in size and time.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { createGuard, isPublicAddress } from "../../src/net/guard.ts";
import type { GuardOptions } from "../../src/net/guard.ts";
import { Failure } from "../../src/shared/failures.ts";

const LIMITS: GuardOptions = { maxBytes: 1000, timeoutMs: 5000 };
const OPEN: GuardOptions = { ...LIMITS, allow: ["127.0.0.0/8"] };

const BOMB = gzipSync(Buffer.alloc(256 * 1024 * 1024));

const seen: { url: string; host: string; secret: string }[] = [];
const server = createServer((request, response) => {
  const { url = "", headers } = request;
  seen.push({ url, host: headers.host ?? "", secret: String(headers["x-secret"] ?? "") });
  const to = new URL(url, "http://x").searchParams.get("to");
  if (url === "/loop") response.writeHead(302, { location: "/loop" }).end();
  else if (to !== null) response.writeHead(302, { location: to }).end();
  else if (url === "/large") response.end("x".repeat(5000));
  else if (url === "/packed")
    response.setHeader("content-encoding", "gzip").end(gzipSync("fine, and packed"));
  // A quarter of a gigabyte in 250 KB.
  else if (url === "/bomb") response.setHeader("content-encoding", "gzip").end(BOMB);
  else if (url === "/drip") response.write("x");
  else response.end("fine");
});
let port = 0;

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

async function refusal(address: string, options: GuardOptions = LIMITS, names: readonly string[] = []) {
  const guard = createGuard(() => Promise.resolve(names));
  try {
    await guard(address, options);
    return "went through";
  } catch (error) {
    return error instanceof Failure ? error.code : String(error);
  }
}

test("told to stay on the host, a redirect elsewhere is refused by name, and one in circles as unreachable", async () => {
  const stays: GuardOptions = { ...OPEN, staysOnHost: true };
  const here = `http://127.0.0.1:${port}`;
  const guard = createGuard(() => Promise.resolve([]));
  expect((await guard(`${here}/?to=/fine`, stays)).status).toBe(200);
  // Another port of the same host is the host; another name for it is not, nor is TLS given up.
  expect(await refusal(`${here}/?to=${encodeURIComponent(`http://127.0.0.2:${port}/`)}`, stays)).toBe(
    "address_redirected",
  );
  expect(await refusal(`${here}/?to=${encodeURIComponent("https://127.0.0.1:1/")}`, stays)).toBe(
    "address_unreachable",
  );
  expect(await refusal(`${here}/loop`, stays)).toBe("address_unreachable");
  expect(await refusal(`${here}/loop`, OPEN)).toBe("address_refused");
});

test("what is packed unasked is unpacked up to the cap, piece by piece", async () => {
  const guard = createGuard(() => Promise.resolve([]));
  const { bytes } = await guard(`http://127.0.0.1:${port}/packed`, OPEN);
  expect(new TextDecoder().decode(bytes)).toBe("fine, and packed");
  const before = process.memoryUsage().rss;
  for (let tries = 0; tries < 4; tries++)
    expect(await refusal(`http://127.0.0.1:${port}/bomb`, OPEN)).not.toBe("went through");
  expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024);
});

describe("closed addresses", () => {
  const closed = [
    ["loopback", "127.0.0.1"],
    ["loopback elsewhere in its network", "127.8.9.1"],
    ["this host", "0.0.0.0"],
    ["private 10", "10.1.2.3"],
    ["private 172.16", "172.16.0.1"],
    ["private 192.168", "192.168.1.1"],
    ["link-local and cloud metadata", "169.254.169.254"],
    ["carrier-grade NAT and Alibaba's metadata", "100.100.100.200"],
    ["broadcast", "255.255.255.255"],
    ["multicast", "224.0.0.1"],
    ["reserved", "240.0.0.1"],
    ["benchmark network", "198.18.0.1"],
    ["IPv6 loopback", "::1"],
    ["IPv6 unspecified", "::"],
    ["IPv6 unique local and AWS metadata", "fd00:ec2::254"],
    ["IPv6 link-local", "fe80::1"],
    ["IPv4 mapped into IPv6", "::ffff:10.0.0.1"],
    ["IPv4 mapped, in hexadecimal", "::ffff:7f00:1"],
    ["NAT64 of a loopback", "64:ff9b::7f00:1"],
    ["6to4 of a loopback", "2002:7f00:1::"],
    ["Teredo", "2001:0:53aa:64c::1"],
    ["IPv6 multicast", "ff02::1"],
    ["IPv4-compatible IPv6 of a loopback", "::7f00:1"],
    ["IPv4-translated IPv6 of a loopback", "::ffff:0:7f00:1"],
    ["a translation prefix that no registry knows", "::ffff:0:0:7f00:1"],
    ["IPv6 outside of what is assigned", "4000::1"],
    ["local-use NAT64 of a loopback", "64:ff9b:1::7f00:1"],
    ["site-local, deprecated", "fec0::1"],
    ["Google's metadata over IPv6", "fd20:ce::254"],
    ["Azure's host, at a public address", "168.63.129.16"],
    ["Oracle's metadata", "192.0.0.192"],
    ["6to4 relays", "192.88.99.1"],
  ] as const;

  for (const [name, address] of closed) {
    test(`${name} is refused, as an address and behind a name`, async () => {
      expect(isPublicAddress(address)).toBe(false);
      const literal = address.includes(":") ? `[${address}]` : address;
      expect(await refusal(`http://${literal}/`)).toBe("address_refused");
      expect(await refusal("http://innocent.example/", LIMITS, [address])).toBe("address_refused");
      // One good address does not vouch for the others.
      expect(await refusal("http://innocent.example/", LIMITS, ["93.184.216.34", address])).toBe(
        "address_refused",
      );
    });
  }

  for (const spelling of [
    "http://2130706433/",
    "http://0x7f.1/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://0/",
  ]) {
    test(`${spelling} is the loopback in disguise`, async () => {
      expect(await refusal(spelling)).toBe("address_refused");
    });
  }

  test("public addresses are open", () => {
    expect(
      ["93.184.216.34", "2606:2800:220:1::1", "::ffff:8.8.8.8"].map((address) => isPublicAddress(address)),
    ).toEqual([true, true, true]);
  });

  test("other protocols, credentials and nonsense are refused", async () => {
    for (const address of [
      "file:///etc/passwd",
      "ftp://example.com/",
      "http://user:pw@example.com/",
      "no address",
    ])
      expect(await refusal(address, LIMITS, ["93.184.216.34"])).toBe("address_refused");
  });

  test("a name without an address is unreachable", async () => {
    expect(await refusal("http://nowhere.example/")).toBe("address_unreachable");
  });
});

describe("the connection", () => {
  test("goes to the checked address under the URL's own name, so that a second answer of the name server changes nothing", async () => {
    seen.length = 0;
    let asked = 0;
    const guard = createGuard(() => Promise.resolve(asked++ === 0 ? ["127.0.0.1"] : ["10.0.0.1"]));
    const answer = await guard(`http://rebinding.example:${port}/a?b=c`, OPEN);
    expect(new TextDecoder().decode(answer.bytes)).toBe("fine");
    expect(seen).toEqual([{ url: "/a?b=c", host: `rebinding.example:${port}`, secret: "" }]);
    expect(asked).toBe(1);
  });

  test("an opened network does not open the others", async () => {
    expect(await refusal("http://10.0.0.1/", OPEN)).toBe("address_refused");
    expect(isPublicAddress("10.0.0.1", ["10.0.0.1"])).toBe(true);
    expect(isPublicAddress("10.0.0.2", ["10.0.0.1", "nonsense", "fe80::/10"])).toBe(false);
  });

  test("each redirect is checked anew", async () => {
    const guard = createGuard((name) =>
      Promise.resolve(name === "good.example" ? ["127.0.0.1"] : ["169.254.169.254"]),
    );
    const to = (address: string) => `http://good.example:${port}/?to=${encodeURIComponent(address)}`;
    for (const target of ["http://169.254.169.254/latest", "http://bad.example/", "file:///etc/passwd"])
      expect(await guard(to(target), OPEN).catch((error: Failure) => error.code)).toBe("address_refused");
    const fine = await guard(to(`http://good.example:${port}/end`), OPEN);
    expect(fine.status).toBe(200);
  });

  test("redirects end", async () => {
    const guard = createGuard(() => Promise.resolve(["127.0.0.1"]));
    seen.length = 0;
    const loop = `http://a.example:${port}/loop`;
    expect(await guard(loop, OPEN).catch((error: Failure) => error.code)).toBe("address_refused");
    expect(seen.length).toBe(4);
  });

  test("headers do not follow to another host, and a POST is not redirected", async () => {
    const guard = createGuard(() => Promise.resolve(["127.0.0.1"]));
    const target = `http://b.example:${port}/end`;
    const address = `http://a.example:${port}/?to=${encodeURIComponent(target)}`;
    seen.length = 0;
    await guard(address, { ...OPEN, headers: { "x-secret": "s" } });
    expect(seen.map((request) => request.secret)).toEqual(["s", ""]);
    const post = guard(address, { ...OPEN, method: "POST", body: "x" });
    expect(await post.catch((error: Failure) => error.code)).toBe("address_refused");
  });

  test("a name server that says nothing is waited for as long as for all the rest, or until the caller gives up", async () => {
    const silent = createGuard(() => new Promise<never>(() => {}));
    const code = (promise: Promise<unknown>) => promise.catch((error: Failure) => error.code);
    for (const proxy of ["", "http://127.0.0.1:9"])
      expect(await code(silent("https://a.example/", { ...LIMITS, timeoutMs: 20, proxy }))).toBe(
        "address_unreachable",
      );
    const leaving = new AbortController();
    const asked = code(
      silent("https://a.example/", { ...LIMITS, timeoutMs: 600_000, signal: leaving.signal }),
    );
    leaving.abort();
    expect(await asked).toBe("address_unreachable");
  });

  test("what comes back is bounded in size and time", async () => {
    const guard = createGuard(() => Promise.resolve(["127.0.0.1"]));
    const code = (promise: Promise<unknown>) => promise.catch((error: Failure) => error.code);
    expect(await code(guard(`http://a.example:${port}/large`, OPEN))).toBe("address_answer_too_large");
    expect(await code(guard(`http://a.example:${port}/drip`, { ...OPEN, timeoutMs: 50 }))).toBe(
      "address_unreachable",
    );
  });
});
