// Whose address counts: the socket's, and what a proxy says only when TRUSTED_PROXIES names that proxy.
// Refuses nothing itself; the wire cases read the outcome at a key that only one address may use.
import { describe, expect, test } from "bun:test";
import { clientAddress, parseRanges } from "../../src/http/address.ts";
import { startTestApp } from "../support/app.ts";

function addressOf(peer: string, headers: Record<string, string>, trusted: string[] = []): string {
  const request = new Request("http://localhost/", { headers });
  return clientAddress(request, { requestIP: () => ({ address: peer }) }, parseRanges(trusted));
}

const PROXY = "10.0.0.1";
const TRUSTED = ["10.0.0.0/8", "fd00::/8"];

describe("the client's address", () => {
  test("is the socket's, whatever the headers say, when no proxy is trusted", () => {
    const forged = { "x-forwarded-for": "1.2.3.4", "x-real-ip": "1.2.3.4", forwarded: "for=1.2.3.4" };
    expect(addressOf("203.0.113.9", forged)).toBe("203.0.113.9");
    expect(addressOf("203.0.113.9", forged, TRUSTED)).toBe("203.0.113.9");
  });

  test.each<[string, Record<string, string>, string]>([
    ["the only entry", { "x-forwarded-for": "1.2.3.4" }, "1.2.3.4"],
    [
      "the last entry that is no trusted proxy",
      { "x-forwarded-for": "6.6.6.6, 1.2.3.4, 10.9.9.9" },
      "1.2.3.4",
    ],
    ["not what the client wrote before the proxy", { "x-forwarded-for": "127.0.0.1, 1.2.3.4" }, "1.2.3.4"],
    ["without empty entries, and what stands behind", { "x-forwarded-for": "evil, 1.2.3.4,, ," }, "1.2.3.4"],
    ["the proxy's own where it says that it knows none", { "x-forwarded-for": "1.2.3.4, unknown" }, PROXY],
    ["the one with its port", { "x-forwarded-for": "6.6.6.6, 1.2.3.4:41234" }, "1.2.3.4"],
    ["one in brackets, with its port", { "x-forwarded-for": "6.6.6.6, [2001:db8::1]:443" }, "2001:db8::1"],
    ["an IPv6 address", { "x-forwarded-for": "2001:db8::1, fd00::2" }, "2001:db8::1"],
    ["a mapped address in its short form", { "x-forwarded-for": "::ffff:1.2.3.4" }, "1.2.3.4"],
    ["X-Real-IP where nothing was forwarded", { "x-real-ip": " 1.2.3.4 " }, "1.2.3.4"],
    [
      "the forwarded one before X-Real-IP",
      { "x-forwarded-for": "1.2.3.4", "x-real-ip": "5.6.7.8" },
      "1.2.3.4",
    ],
    ["the proxy's own when it says nothing", {}, PROXY],
    ["the proxy's own when all are proxies", { "x-forwarded-for": "10.1.1.1, 10.2.2.2" }, PROXY],
    [
      "the proxy's own when all are proxies, whatever the client wrote as X-Real-IP",
      { "x-forwarded-for": "10.9.9.9", "x-real-ip": "203.0.113.5" },
      PROXY,
    ],
    [
      "a client within the networks of proxies, where the proxy names it in both headers",
      { "x-forwarded-for": "10.1.2.3", "x-real-ip": "10.1.2.3" },
      "10.1.2.3",
    ],
    [
      "the proxy's own where only the client wrote what X-Real-IP repeats",
      { "x-forwarded-for": "10.1.2.3, 10.9.9.9", "x-real-ip": "10.1.2.3" },
      PROXY,
    ],
    ["the proxy's own when it talks nonsense", { "x-forwarded-for": "x".repeat(10_000) }, PROXY],
  ])("behind a trusted proxy is %s", (_, headers, expected) => {
    expect(addressOf(PROXY, headers, TRUSTED)).toBe(expected);
    expect(addressOf(`::ffff:${PROXY}`, headers, TRUSTED)).toBe(expected);
  });
});

describe("over the wire", () => {
  test.each([
    ["does not open a key that another address may use", "", 403],
    ["does so when the peer is a trusted proxy", "127.0.0.1", 404],
    ["does not when another proxy is trusted", "10.0.0.0/8", 403],
  ])("a forwarded header %s", async (_, trusted, status) => {
    const app = await startTestApp({ env: { TRUSTED_PROXIES: trusted } });
    const user = await app.createUser({ quota: 1000 });
    const { key } = await app.createToken(user.id, { allowIps: "203.0.113.7" });
    const response = await fetch(`${app.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "x-forwarded-for": "203.0.113.7" },
      body: JSON.stringify({ model: "nobody-serves-it", messages: [{ role: "user", content: "hi" }] }),
    });
    // 404: past the address, there is only no channel for the model.
    expect(response.status).toBe(status);
    await app.close();
  });
});
