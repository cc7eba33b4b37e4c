// The HTML document around every page: language, theme, style, scripts, boot data.
// Refuses inline code without the page's nonce.
import type { ReactNode } from "react";

export type Translate = (key: string, params?: Record<string, string | number>) => string;

export interface DocumentProps {
  title: string;
  description: string;
  language: "zh" | "en";
  /** paper, ink, or undefined to follow the system. */
  themeName: "paper" | "ink" | undefined;
  sidebarCollapsed: boolean;
  stylesheet: string;
  /** Module scripts that run. */
  scripts: readonly string[];
  /** Modules worth fetching at once. */
  preloads: readonly string[];
  icon: string;
  nonce: string;
  /** Escaped JSON of the boot data; undefined on pages without an island. */
  bootJson: string | undefined;
  /** Not for search engines: everything behind the login. */
  isPrivate: boolean;
  children: ReactNode;
}

export function Document(props: DocumentProps) {
  return (
    <html
      lang={props.language === "zh" ? "zh-CN" : "en"}
      data-theme={props.themeName}
      data-sidebar={props.sidebarCollapsed ? "collapsed" : undefined}
    >
      <head>
        <meta charSet="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover" />
        <title>{props.title}</title>
        <meta name="description" content={props.description} />
        {props.isPrivate ? <meta name="robots" content="noindex" /> : null}
        <meta name="color-scheme" content="light dark" />
        <link rel="icon" href={props.icon} />
        {/* With a precedence React writes it before every preload: nothing is painted without it. */}
        <link rel="stylesheet" href={props.stylesheet} precedence="first" />
        {/* A header of which a part is there moves when the rest comes: the first paint has all of it. */}
        <link rel="expect" href="#content" blocking="render" />
        {props.preloads.map((href) => (
          <link key={href} rel="modulepreload" href={href} />
        ))}
        {props.scripts.map((src) => (
          <script key={src} type="module" src={src} nonce={props.nonce} />
        ))}
      </head>
      <body>
        {props.children}
        {props.bootJson === undefined ? null : (
          <script
            id="boot"
            type="application/json"
            nonce={props.nonce}
            dangerouslySetInnerHTML={{ __html: props.bootJson }}
          />
        )}
      </body>
    </html>
  );
}
