// What a password's hash costs whoever steals it: the product's own figures, which other tests make light.
import { expect, spyOn, test } from "bun:test";
import { hashPassword, verifyPassword } from "../../../src/core/users/credentials.ts";
import { heavyHash } from "../../support/light-hashes.ts";

test("a password is kept as argon2id over 19 MiB in two passes, and matches nothing but itself", async () => {
  const hash = spyOn(Bun.password, "hash").mockImplementation(heavyHash);
  try {
    const kept = await hashPassword("correct horse");
    expect(kept).toStartWith("$argon2id$v=19$m=19456,t=2,p=1$");
    expect(await verifyPassword("correct horse", kept)).toEqual({ matches: true, needsRehash: false });
    expect(await verifyPassword("wrong horse", kept)).toEqual({ matches: false, needsRehash: false });
  } finally {
    hash.mockRestore();
  }
});
