// Colours for code, by highlight.js through lowlight, whose answer is a tree: no HTML is made of what a model wrote.
// Fetched with the first block of a known language.
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import csharp from "highlight.js/lib/languages/csharp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import kotlin from "highlight.js/lib/languages/kotlin";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import swift from "highlight.js/lib/languages/swift";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { createLowlight } from "lowlight";
import type { ReactNode } from "react";

const lowlight = createLowlight({
  bash,
  c,
  cpp,
  csharp,
  css,
  diff,
  dockerfile,
  go,
  ini,
  java,
  javascript,
  json,
  kotlin,
  php,
  python,
  ruby,
  rust,
  sql,
  swift,
  typescript,
  xml,
  yaml,
});

/** Scopes of the highlighter to colours of the themes, all of which are readable on their background. */
const COLOURS: Readonly<Record<string, string>> = {
  keyword: "text-primary",
  selector: "text-primary",
  name: "text-primary",
  tag: "text-primary",
  section: "text-primary font-semibold",
  built_in: "text-info",
  type: "text-info",
  title: "text-info",
  attr: "text-info",
  attribute: "text-info",
  property: "text-info",
  string: "text-success",
  regexp: "text-success",
  addition: "text-success",
  number: "text-warning-text",
  literal: "text-warning-text",
  symbol: "text-warning-text",
  meta: "text-muted",
  comment: "text-muted italic",
  quote: "text-muted italic",
  deletion: "text-error",
};

interface TreeNode {
  type: string;
  value?: string;
  properties?: { className?: unknown };
  children?: readonly TreeNode[];
}

function colourOf({ properties }: TreeNode): string | undefined {
  const names = Array.isArray(properties?.className) ? (properties.className as unknown[]) : [];
  for (const name of names) {
    const scope = String(name).replace(/^hljs-/, "");
    if (Object.hasOwn(COLOURS, scope)) return COLOURS[scope];
  }
  return undefined;
}

function draw(nodes: readonly TreeNode[]): ReactNode[] {
  return nodes.map((node, index) => {
    if (node.type === "text") return node.value ?? "";
    return (
      <span key={index} className={colourOf(node)}>
        {draw(node.children ?? [])}
      </span>
    );
  });
}

/** Undefined for a language that is not among these. */
export function highlight(language: string, code: string): ReactNode {
  const name = language.toLowerCase();
  if (!lowlight.registered(name)) return undefined;
  return draw(lowlight.highlight(name, code).children as readonly TreeNode[]);
}
