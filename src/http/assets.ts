// Files for the browser: hashed assets below /a/ out of memory in the best encoding the client takes, and the few
// plain files at the root (favicon, logo, robots) through @elysiajs/static. Refuses to compress while serving.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { extname, join } from "node:path";
import { staticPlugin } from "@elysiajs/static";
import { Elysia } from "elysia";
import { bestEncoding } from "./encodings.ts";
import type { Encoding } from "./encodings.ts";
import { checkedBy } from "./session.ts";

/** Directory of something embedded in the binary, or its place in the source tree. */
export function embeddedPath(name: "a" | "manifest.json" | "licenses.json" | "public" | "locales"): string {
  if (Bun.isStandaloneExecutable) return join(import.meta.dir, name);
  const inSource = {
    a: "dist/a",
    "manifest.json": "dist/manifest.json",
    "licenses.json": "dist/licenses.json",
    public: "views/public",
    locales: "locales",
  };
  return join(import.meta.dir, "../..", inSource[name]);
}

export interface Manifest {
  /** `keys`: texts that the screen may show before a part of it is opened; when absent, every text. */
  entries: Record<string, { file: string; imports: string[]; keys?: string[] }>;
  css: string;
  /** Files with every text, by language. */
  texts?: Record<string, string>;
}

/** Without a build the pages come without scripts and style: tests of the server need neither. */
export function readManifest(): Manifest {
  const path = embeddedPath("manifest.json");
  if (!existsSync(path)) return { entries: {}, css: "" };
  return JSON.parse(readFileSync(path, "utf8")) as Manifest;
}

const TYPES: Record<string, string> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".json": "application/json",
};

/** Best first, with the endings of their files: what a browser takes decides. */
const ENCODINGS: readonly [Encoding, string][] = [
  ["br", ".br"],
  ["zstd", ".zst"],
  ["gzip", ".gz"],
];

interface Asset {
  type: string;
  /** Weak: one for the encodings of a file, whose bytes differ. */
  etag: string;
  /** Bytes per content encoding; "" is the plain file. */
  variants: Map<string, Uint8Array<ArrayBuffer>>;
}

function loadAssets(dir: string): Map<string, Asset> {
  const assets = new Map<string, Asset>();
  if (!existsSync(dir)) return assets;
  const names = readdirSync(dir).sort();
  for (const name of names) {
    const type = TYPES[extname(name)];
    if (type === undefined) continue;
    const variants = new Map<string, Uint8Array<ArrayBuffer>>([
      ["", new Uint8Array(readFileSync(join(dir, name)))],
    ]);
    for (const [encoding, suffix] of ENCODINGS) {
      if (names.includes(name + suffix))
        variants.set(encoding, new Uint8Array(readFileSync(join(dir, name + suffix))));
    }
    assets.set(name, { type, etag: `W/"${name}"`, variants });
  }
  return assets;
}

function serveAsset(assets: ReadonlyMap<string, Asset>, name: string, request: Request): Response {
  const asset = assets.get(name);
  if (!asset)
    return new Response("not found", {
      status: 404,
      headers: { "cache-control": "no-store", "x-content-type-options": "nosniff" },
    });
  const headers: Record<string, string> = {
    "content-type": asset.type,
    "cache-control": "public, max-age=31536000, immutable",
    vary: "Accept-Encoding",
    etag: asset.etag,
    "x-content-type-options": "nosniff",
  };
  if (request.headers.get("if-none-match") === asset.etag)
    return new Response(null, { status: 304, headers });
  const offered = ENCODINGS.flatMap(([encoding]) => (asset.variants.has(encoding) ? [encoding] : []));
  const encoding = bestEncoding(request.headers.get("accept-encoding"), offered);
  if (encoding !== undefined)
    return new Response(asset.variants.get(encoding), {
      headers: { ...headers, "content-encoding": encoding },
    });
  return new Response(asset.variants.get(""), { headers });
}

export interface AssetSources {
  assetDir: string;
  /** Development: files change while the server runs. */
  reload?: boolean;
}

/** /a/*: names carry a content hash, so they are cached for good. */
export function assets(sources: AssetSources = { assetDir: embeddedPath("a") }) {
  let loaded: Map<string, Asset> | undefined;
  const current = () => (loaded && !sources.reload ? loaded : (loaded = loadAssets(sources.assetDir)));
  return new Elysia({ name: "assets" }).get(
    "/a/:file",
    ({ params, request }) => serveAsset(current(), params.file, request),
    checkedBy("nobody: public file"),
  );
}

/** favicon.ico, favicon.svg, logo.svg and robots.txt at the root: small, rarely asked for, cached for a day. */
export async function publicFiles(dir: string = embeddedPath("public")) {
  return await staticPlugin({
    assets: dir,
    prefix: "/",
    alwaysStatic: true,
    indexHTML: false,
    maxAge: 86_400,
    headers: { "x-content-type-options": "nosniff" },
    detail: checkedBy("nobody: public file").detail,
    silent: true,
  });
}
