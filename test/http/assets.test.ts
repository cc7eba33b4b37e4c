// Files for the browser: the best encoding a client takes, cached for good, nothing outside the directory.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assets, embeddedPath, publicFiles } from "../../src/http/assets.ts";

const dir = mkdtempSync(join(tmpdir(), "weir-assets-"));
let app: ReturnType<typeof assets>;

beforeAll(() => {
  writeFileSync(join(dir, "x-1.js"), "plain");
  writeFileSync(join(dir, "x-1.js.br"), "brotli");
  writeFileSync(join(dir, "x-1.js.gz"), "gzip");
  writeFileSync(join(dir, "secret.txt"), "secret");
  app = assets({ assetDir: dir });
});

afterAll(() => rmSync(dir, { recursive: true, force: true }));

const get = (path: string, headers: Record<string, string> = {}) =>
  app.handle(new Request(`http://localhost${path}`, { headers }));

describe("hashed assets", () => {
  test.each([
    ["gzip, deflate, br, zstd", "br", "brotli"],
    ["gzip", "gzip", "gzip"],
    ["br;q=0, gzip;q=0.5", "gzip", "gzip"],
    ["zstd", null, "plain"],
    ["", null, "plain"],
  ])("a client that takes %p gets %p", async (accepted, encoding, body) => {
    const answer = await get("/a/x-1.js", { "accept-encoding": accepted });
    expect(answer.headers.get("content-encoding")).toBe(encoding);
    expect(await answer.text()).toBe(body);
    expect(answer.headers.get("vary")).toBe("Accept-Encoding");
    expect(answer.headers.get("cache-control")).toContain("immutable");
    expect(answer.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
  });

  test("what the client has is not sent again", async () => {
    const etag = (await get("/a/x-1.js")).headers.get("etag") ?? "";
    expect((await get("/a/x-1.js", { "if-none-match": etag })).status).toBe(304);
  });

  test.each(["/a/nope.js", "/a/secret.txt", "/a/..%2f..%2fpackage.json", "/a/x-1.js.br"])(
    "%s is not served",
    async (path) => {
      expect((await get(path)).status).toBe(404);
    },
  );
});

describe("plain files", () => {
  test.each([
    ["/favicon.ico", "image/x-icon"],
    ["/logo.svg", "image/svg+xml"],
    ["/robots.txt", "text/plain"],
  ])("%s is there", async (path, type) => {
    const plain = await publicFiles(embeddedPath("public"));
    const answer = await plain.handle(new Request(`http://localhost${path}`));
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toContain(type);
    expect(answer.headers.get("cache-control")).toContain("max-age=86400");
  });

  test("every one of their routes declares that anybody may read it", async () => {
    const plain = await publicFiles(embeddedPath("public"));
    expect(plain.routes.length).toBeGreaterThan(2);
    for (const route of plain.routes) {
      expect((route.hooks as { detail?: { security?: unknown } }).detail?.security).toEqual([]);
    }
  });
});
