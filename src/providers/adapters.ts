// The table of adapters by the name that catalogue rows give.
// Refuses names without an entry: test/providers/catalog.test.ts compares both sides.
import type { Adapter } from "./adapter.ts";

export const ADAPTERS: Readonly<Record<string, Adapter>> = {};
