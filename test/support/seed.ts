// Loaded before every test file where WEIR_SEED is set: the random cases of properties are those of that seed.
// Refuses to be loaded without one: new cases are drawn then.
import fc from "fast-check";

const seed = Number(Bun.env["WEIR_SEED"]);
if (!Number.isSafeInteger(seed)) throw new Error("WEIR_SEED must be a whole number");
fc.configureGlobal({ seed });
