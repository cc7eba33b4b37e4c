// Options of the JavaScript engine and of the memory allocator that this program runs with; env.ts starts it with them.
// Refuses what trades memory for speed without bounds: each says what it was measured at.

/**
 * How far the heap may grow before it is collected, over what lived after the last full collection. JavaScriptCore lets
 * it triple where the machine has more than 16 GB and double elsewhere, which one slow client of a large stream fills
 * with dead chunks: chunks that lived through a young collection wait for a full one. Measured on a 400 MB stream:
 * 35-50 MB by default, under 30 MB with this. Tighter values save more and cost calls: 0.6 with a growth factor of 1.6
 * took a quarter of the rate at 32 at once.
 */
const ENGINE = { BUN_JSC_heapGrowthMaxIncrease: "0.75" };

/**
 * How long memory that was freed stays with the process before the system gets it back, in ms: whole pages, and holes in pages
 * that are partly in use. Bun's allocator gives both back after 100, so that the pages of every young collection were asked for
 * anew: two page faults and 8 to 14 % of the processor time of a plain call at 32 at once. Never giving back (-1) saves a
 * little more, and keeps the largest amount that was ever needed.
 */
const ALLOCATOR = {
  MIMALLOC_PURGE_DELAY: "2000",
  MIMALLOC_PURGE_HOLES_MIN_INTERVAL: "4000",
};

/**
 * How often the runtime looks by itself whether to collect, in ms, besides the engine, which goes by what was allocated. By default
 * it does each second, and what is under way at that moment counts as old from then on, so that full collections follow: a
 * third of all collecting under streams. With this a stream of fifty chunks takes 0.9 of the processor time (medians of 18
 * rounds, means of four), a call at 30 a second 1.04 (three runs: 0.93 to 1.11, noise). A process that comes to rest collects by itself (serve.ts).
 */
const COLLECTOR = { BUN_GC_TIMER_INTERVAL: "10000" };

/** By the variables that the runtime reads. */
export const RUNTIME_OPTIONS: Readonly<Record<string, string>> = { ...ENGINE, ...ALLOCATOR, ...COLLECTOR };
