// htmx-lite: server-rendered HTML that fetches and swaps parts of itself by attributes, without React.
// Refuses foreign origins and stale answers; delegated events, so swapped content works at once.
//
//   data-get="/path" or data-post="/path"    what to ask; forms with data-lite send themselves
//   data-target="#id" | "closest .row" | "this"   what to replace (default: the element itself)
//   data-swap="inner" | "outer" | "append" | "prepend" | "none"   how (default: inner)
//   data-on="click" | "change" | "input" | "load" | "every 5s"     when (default: by the kind of element)
//   data-confirm="question"                                        asks first
//
// A Lite-Redirect header moves the page. Events on the target: lite:swapped; on the element: lite:failed.
import { startShell } from "./lib/shell.ts";

const SELECTOR = "[data-get], [data-post], form[data-lite]";
const INPUT_DELAY_MS = 250;

const running = new WeakMap<Element, AbortController>();
const delayed = new WeakMap<Element, ReturnType<typeof setTimeout>>();
const repeating = new WeakSet<Element>();

function triggerOf(element: Element): string {
  const asked = element.getAttribute("data-on");
  if (asked) return asked;
  if (element instanceof HTMLFormElement) return "submit";
  if (element.matches("input, textarea")) return "input";
  if (element.matches("select")) return "change";
  return "click";
}

function targetOf(element: Element): Element | null {
  const asked = element.getAttribute("data-target") ?? "this";
  if (asked === "this") return element;
  if (asked.startsWith("closest ")) return element.closest(asked.slice(8));
  return document.querySelector(asked);
}

interface Question {
  url: string;
  method: string;
  body: FormData | URLSearchParams | undefined;
}

function questionOf(element: Element, submitter: HTMLElement | null): Question {
  const post = element.getAttribute("data-post");
  const get = element.getAttribute("data-get");
  if (element instanceof HTMLFormElement) {
    const data = new FormData(element, submitter);
    const action = submitter?.getAttribute("formaction") ?? post ?? get ?? element.action;
    const method = (
      submitter?.getAttribute("formmethod") ?? (post ? "post" : get ? "get" : element.method)
    ).toUpperCase();
    if (method !== "GET") return { url: action, method, body: data };
    const url = new URL(action, location.href);
    url.search = new URLSearchParams(
      [...data].map(([name, value]) => [name, typeof value === "string" ? value : value.name]),
    ).toString();
    return { url: url.href, method, body: undefined };
  }
  const field =
    element instanceof HTMLInputElement || element instanceof HTMLSelectElement ? element : undefined;
  if (post !== null) {
    const body = field?.name ? new URLSearchParams([[field.name, field.value]]) : undefined;
    return { url: post, method: "POST", body };
  }
  const url = new URL(get ?? "", location.href);
  if (field?.name) url.searchParams.set(field.name, field.value);
  return { url: url.href, method: "GET", body: undefined };
}

function swap(target: Element, how: string, html: string): Element[] {
  const template = document.createElement("template");
  template.innerHTML = html;
  // Text that came in a response is shown, never run.
  for (const script of template.content.querySelectorAll("script")) script.remove();
  const added = [...template.content.children];
  if (how === "outer") target.replaceWith(template.content);
  else if (how === "append") target.append(template.content);
  else if (how === "prepend") target.prepend(template.content);
  else if (how === "inner") target.replaceChildren(template.content);
  return added;
}

/** Asks and swaps; a newer question of the same element aborts the older one. */
export async function send(element: Element, submitter: HTMLElement | null = null): Promise<void> {
  const question = element.getAttribute("data-confirm");
  if (question && !window.confirm(question)) return;
  const { url, method, body } = questionOf(element, submitter);
  if (new URL(url, location.href).origin !== location.origin) return;
  running.get(element)?.abort();
  const controller = new AbortController();
  running.set(element, controller);
  element.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(url, {
      method,
      headers: { "Lite-Request": "true" },
      signal: controller.signal,
      ...(body ? { body } : {}),
    });
    const redirect = answer.headers.get("lite-redirect");
    if (redirect) {
      location.assign(new URL(redirect, location.href).pathname + new URL(redirect, location.href).search);
      return;
    }
    const html = await answer.text();
    if (controller.signal.aborted) return;
    if (!answer.ok) throw new Error(String(answer.status));
    const target = targetOf(element);
    if (!target) return;
    const how = element.getAttribute("data-swap") ?? "inner";
    const parent = target.parentElement;
    const added = swap(target, how, html);
    for (const each of added) start(each);
    (how === "outer" ? parent : target)?.dispatchEvent(
      new CustomEvent("lite:swapped", { bubbles: true, detail: { added } }),
    );
  } catch (error) {
    if (controller.signal.aborted) return;
    element.dispatchEvent(new CustomEvent("lite:failed", { bubbles: true, detail: { error } }));
  } finally {
    if (running.get(element) === controller) {
      running.delete(element);
      element.removeAttribute("aria-busy");
    }
  }
}

function onEvent(event: Event): void {
  const element = event.target instanceof Element ? event.target.closest(SELECTOR) : null;
  if (!element || triggerOf(element) !== event.type) return;
  if (event.type === "submit" || (event.type === "click" && element.matches("a, button")))
    event.preventDefault();
  if (event.type !== "input") {
    void send(element, (event as SubmitEvent).submitter ?? null);
    return;
  }
  if ((event as InputEvent).isComposing) return;
  clearTimeout(delayed.get(element));
  delayed.set(
    element,
    setTimeout(() => void send(element), INPUT_DELAY_MS),
  );
}

/** Elements that ask by themselves: once when they appear, or again and again while they are in the page. */
function start(root: ParentNode | Element): void {
  const found = [...root.querySelectorAll('[data-on="load"], [data-on^="every "]')];
  if (root instanceof Element && root.matches('[data-on="load"], [data-on^="every "]')) found.push(root);
  for (const element of found) {
    const every = /^every (\d+)s$/.exec(element.getAttribute("data-on") ?? "");
    if (!every) {
      void send(element);
    } else if (!repeating.has(element)) {
      repeating.add(element);
      const timer = setInterval(
        () => {
          if (!element.isConnected) clearInterval(timer);
          else if (!document.hidden) void send(element);
        },
        Number(every[1]) * 1000,
      );
    }
  }
}

export function startLite(): void {
  for (const type of ["click", "submit", "change", "input"]) document.addEventListener(type, onEvent);
  start(document);
}

if (typeof document !== "undefined" && document.documentElement.dataset.lite !== undefined) {
  startShell();
  startLite();
}
