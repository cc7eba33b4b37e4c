// The encryption key under a passphrase: what goes in comes out, and nothing else opens it.
import { expect, test } from "bun:test";
import { KeyWrapError, MIN_PASSPHRASE, unwrapKey, wrapKey } from "../../../src/core/kit/key-wrap.ts";
import type { WrappedKey } from "../../../src/core/kit/key-wrap.ts";
import { keyFingerprint } from "../../../src/core/kit/seal.ts";

const SECRET = "0wB3Zt9_the-secret-of-a-key-file-42";
const PASSPHRASE = "korrekte Pferde, Bätterie";

/** Wrapping takes its time on purpose: once for all. */
const made = wrapKey(SECRET, PASSPHRASE);

const reasonOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    (found) => `found: ${String(found)}`,
    (error: unknown) => (error instanceof KeyWrapError ? error.reason : error),
  );

test("a wrapped key opens with its passphrase alone, names itself, and holds nothing in clear", async () => {
  const wrapped = JSON.parse(JSON.stringify(await made)) as WrappedKey;
  expect(await unwrapKey(wrapped, PASSPHRASE)).toBe(SECRET);
  // The same letters, composed otherwise.
  expect(await unwrapKey(wrapped, PASSPHRASE.normalize("NFD"))).toBe(SECRET);
  expect(await reasonOf(unwrapKey(wrapped, `${PASSPHRASE}.`))).toBe("passphrase");
  expect(wrapped.fingerprint).toBe(keyFingerprint(SECRET));
  const text = JSON.stringify(wrapped);
  expect([text.includes(SECRET), text.includes(Buffer.from(SECRET).toString("base64url"))]).toEqual([
    false,
    false,
  ]);
});

test("whatever is changed in it, it does not open, and asks for no memory beyond measure", async () => {
  const wrapped = await made;
  const other = keyFingerprint("another key, sixteen letters");
  const flipped = wrapped.sealed.replace(/^./, (letter) => (letter === "A" ? "B" : "A"));
  expect(
    await Promise.all(
      [
        { ...wrapped, fingerprint: other },
        { ...wrapped, sealed: flipped },
        { ...wrapped, sealed: wrapped.sealed.slice(0, 12) },
        { ...wrapped, scrypt: { ...wrapped.scrypt, n: 2 ** 30 } },
        { ...wrapped, scrypt: { ...wrapped.scrypt, n: 1000 } },
        { ...wrapped, wrap: "weir-key-2" },
        undefined,
        "text",
      ].map((each) => reasonOf(unwrapKey(each, PASSPHRASE))),
    ),
  ).toEqual(["passphrase", "passphrase", "damaged", "damaged", "damaged", "damaged", "damaged", "damaged"]);
});

test("a passphrase that can be guessed is refused", async () => {
  expect(await reasonOf(wrapKey(SECRET, "x".repeat(MIN_PASSPHRASE - 1)))).toBe("short");
});
