// Preload for island tests: a DOM from happy-dom beside Bun's own fetch, streams, timers and sockets.
// Refuses to leave components of one test mounted for the next.
import { afterEach } from "bun:test";
import { Window } from "happy-dom";

const window = new Window({ url: "http://localhost/", width: 1280, height: 800 });

/** What stays Bun's: network, streams, timers, encoders. Everything else that a page knows comes from the DOM. */
const BUNS_OWN = new Set(
  (
    "fetch Request Response Headers Blob File ReadableStream WritableStream TransformStream ByteLengthQueuingStrategy " +
    "CountQueuingStrategy AbortController AbortSignal WebSocket URL URLSearchParams TextEncoder TextDecoder crypto " +
    "setTimeout clearTimeout setInterval clearInterval setImmediate clearImmediate queueMicrotask structuredClone " +
    "performance console Bun process Buffer global globalThis atob btoa BroadcastChannel MessageChannel MessagePort " +
    "CompressionStream DecompressionStream Object Function Array String Number Boolean Symbol Error Promise Map Set " +
    "WeakMap WeakSet Date RegExp JSON Math Intl Reflect Proxy ArrayBuffer DataView Uint8Array eval isNaN isFinite " +
    "parseInt parseFloat undefined NaN Infinity"
  ).split(" "),
);

const names = new Set<string>();
for (
  let level: object | null = window;
  level && level !== Object.prototype;
  level = Object.getPrototypeOf(level) as object
) {
  for (const name of Object.getOwnPropertyNames(level)) names.add(name);
}
for (const name of names) {
  if (BUNS_OWN.has(name) || name === "constructor" || name.startsWith("__")) continue;
  const value = (window as unknown as Record<string, unknown>)[name];
  if (value === undefined) continue;
  // Methods of the window need their window; classes must stay the very same objects.
  const isMethod = typeof value === "function" && !/^[A-Z]/.test(name);
  Object.defineProperty(globalThis, name, {
    value: isMethod ? (value as (...args: unknown[]) => unknown).bind(window) : value,
    configurable: true,
    writable: true,
  });
}
// These follow the window instead of being copied once.
for (const name of [
  "location",
  "history",
  "document",
  "navigator",
  "localStorage",
  "sessionStorage",
  "innerWidth",
  "innerHeight",
]) {
  Object.defineProperty(globalThis, name, {
    get: () => (window as unknown as Record<string, unknown>)[name],
    configurable: true,
  });
}
Object.defineProperty(globalThis, "window", { value: globalThis, configurable: true, writable: true });
Object.defineProperty(globalThis, "self", { value: globalThis, configurable: true, writable: true });
// Else React's development build measures every render for the browser's timeline, properties compared: a tenth of the time.
Object.assign(console, { timeStamp: undefined });
(globalThis as unknown as { IS_REACT_ACT_ENVIRONMENT: boolean }).IS_REACT_ACT_ENVIRONMENT = true;

// Popovers as far as the kit uses them: happy-dom has none.
const element = window.HTMLElement.prototype as unknown as Record<string, unknown>;
if (typeof element.showPopover !== "function") {
  const toggle = (node: HTMLElement, newState: "open" | "closed") => {
    if ((node.dataset.testPopover === "open") === (newState === "open")) return;
    node.dataset.testPopover = newState;
    node.dispatchEvent(
      Object.assign(new Event("toggle"), { newState, oldState: newState === "open" ? "closed" : "open" }),
    );
  };
  element.showPopover = function (this: HTMLElement) {
    toggle(this, "open");
  };
  element.hidePopover = function (this: HTMLElement) {
    toggle(this, "closed");
  };
  // In the capturing phase: a listener that stops the event does not stop its default action either.
  const onClick = (event: Event) => {
    const button = (event.target as Element | null)?.closest?.("[popovertarget]");
    const node = button && document.getElementById(button.getAttribute("popovertarget") ?? "");
    if (node) toggle(node, node.dataset.testPopover === "open" ? "closed" : "open");
  };
  document.addEventListener("click", onClick, true);
}
element.scrollIntoView ??= () => undefined;

// A failing query names what it looked for; the whole page beside it hides that.
Bun.env.DEBUG_PRINT_LIMIT ??= "0";

// Only now: it looks for the document when it is loaded.
const { cleanup, configure } = await import("@testing-library/react");
// Waiting ends when the condition holds; a busy machine must not turn that into a failure.
configure({ asyncUtilTimeout: 20_000 });
afterEach(() => {
  cleanup();
  localStorage.clear();
  sessionStorage.clear();
  document.body.replaceChildren();
});
