// Preload for island tests: a DOM from happy-dom, with Bun's own fetch, streams and timers put back.
// Refuses to leave components of one test mounted for the next.
import { GlobalRegistrator } from "@happy-dom/global-registrator";
