// The content security policy of pages: scripts from here or with the nonce, nothing inline beside.
// Refuses plugins, foreign bases and being framed by strangers.
import type { Page } from "./page.ts";

/** Style attributes are allowed because React writes them; style elements and sheets only from here. */
export function contentSecurityPolicy(nonce: string, extra: Page["csp"] = {}): string {
  const join = (...parts: readonly (string | readonly string[] | undefined)[]) =>
    parts.flat().filter(Boolean).join(" ");
  return [
    "default-src 'self'",
    join("script-src 'self'", `'nonce-${nonce}'`, extra.script),
    "style-src 'self'",
    "style-src-attr 'unsafe-inline'",
    // Logos, results and avatars may live anywhere; they cannot run.
    "img-src 'self' data: blob: https: http:",
    "media-src 'self' blob: https: http:",
    join("connect-src 'self'", extra.connect),
    join("frame-src 'self'", extra.frame),
    "font-src 'self'",
    "object-src 'none'",
    "base-uri 'none'",
    // Payment forms are posted to the provider's page.
    "form-action 'self' https: http:",
    "frame-ancestors 'self'",
  ].join("; ");
}
