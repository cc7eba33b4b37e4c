// Writes .br, .zst and .gz beside every asset, so that the server never compresses while it serves.
// Refuses variants that would not be smaller.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompress, constants, gzipSync } from "node:zlib";
import { promisify } from "node:util";

const brotli = promisify(brotliCompress);

/** Names carry a content hash, so a variant that exists is the right one. */
export async function compressAll(dir: string, names: readonly string[]): Promise<void> {
  await Promise.all(
    names.map(async (name) => {
      const path = join(dir, name);
      if (existsSync(`${path}.br`) && existsSync(`${path}.gz`) && existsSync(`${path}.zst`)) return;
      const bytes = readFileSync(path);
      const variants = {
        br: await brotli(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }),
        zst: await Bun.zstdCompress(bytes, { level: 19 }),
        gz: gzipSync(bytes, { level: 9 }),
      };
      for (const [suffix, variant] of Object.entries(variants)) {
        if (variant.byteLength < bytes.byteLength) writeFileSync(`${path}.${suffix}`, variant);
      }
    }),
  );
}

export function gzipSize(path: string): number {
  if (existsSync(`${path}.gz`)) return readFileSync(`${path}.gz`).byteLength;
  return gzipSync(readFileSync(path)).byteLength;
}
