// The secret of an API key: 48 characters at random, and the columns that are made of it.
import { sha256Hex } from "../kit/seal.ts";
import type { Deps } from "../deps.ts";

/** How much of both ends of a key is kept in clear for searching. */
export const END_CHARACTERS = 4;
const KEY_LENGTH = 48;
const KEY_CHARACTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** Bytes from here up would make the first characters of the alphabet likelier. */
const FAIR_BYTES = 256 - (256 % KEY_CHARACTERS.length);

/** 48 characters, each equally likely. `fill` fills an array with random bytes. */
export function newTokenKey(
  fill: (bytes: Uint8Array<ArrayBuffer>) => Uint8Array = (bytes) => crypto.getRandomValues(bytes),
): string {
  let key = "";
  while (key.length < KEY_LENGTH) {
    for (const byte of fill(new Uint8Array(KEY_LENGTH))) {
      if (byte < FAIR_BYTES && key.length < KEY_LENGTH) key += KEY_CHARACTERS[byte % KEY_CHARACTERS.length];
    }
  }
  return key;
}

/** The columns of a new secret. */
export function newSecret({ seal }: Pick<Deps, "seal">) {
  const key = newTokenKey();
  return {
    keyHash: sha256Hex(key),
    keySealed: seal.seal("token", key),
    keyHead: key.slice(0, END_CHARACTERS),
    keyTail: key.slice(-END_CHARACTERS),
  };
}
