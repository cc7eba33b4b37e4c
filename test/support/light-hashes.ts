// Password hashes at a thousandth of their work: a test that signs fifty people in is not about argon2.
// Refuses nothing: the algorithm and the form of a hash are the product's; credentials.test.ts holds what it costs in truth.

/** Bun's own, before any test has made it light. */
export const heavyHash = Bun.password.hash.bind(Bun.password);

let isLight = false;

/** From here on this process hashes lightly; verifying follows, since a hash says itself what it cost. */
export function lightenHashes(): void {
  if (isLight) return;
  isLight = true;
  Bun.password.hash = (password, algorithm) =>
    heavyHash(
      password,
      typeof algorithm === "object" && algorithm.algorithm !== "bcrypt"
        ? { ...algorithm, memoryCost: 64, timeCost: 1 }
        : algorithm,
    );
}
