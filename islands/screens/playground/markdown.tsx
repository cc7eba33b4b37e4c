// An answer's Markdown as elements: paragraphs, lists, tables, code, links, formulas. Own chunk, with its reader.
// Refuses raw HTML (shown as the text that it is), links but http, https and mailto, and pictures from other servers.
import { ImageIcon } from "lucide-react";
import type { Token, Tokens } from "marked";
import { Fragment, memo, useDeferredValue, useEffect, useRef, useState } from "react";
import type { ReactNode } from "react";
import { formatNumber } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { CodeBlock } from "./code-block.tsx";
import { Formula } from "./formula.tsx";
import type { Block, FormulaToken } from "./markdown-blocks.ts";
import { GrowingMarkdown } from "./markdown-blocks.ts";
import { PlainText } from "./plain-text.tsx";
import { textOf } from "./text-entities.ts";

/** Deeper lists and quotations are shown as they were written. */
const MOST_DEPTH = 20;
/** Rows of a table that are drawn before somebody asks for all. */
const MOST_ROWS = 100;
/** Reading may take one part in so many of the time: a long answer is drawn less often, not at the cost of the page. */
const SHARE = 8;

export interface MarkdownProps {
  text: string;
  isGrowing: boolean;
}

/** The blocks of a text; while it grows at most as often as reading it leaves the page room. */
function useBlocks(text: string, isGrowing: boolean): readonly Block[] {
  const reader = useRef<GrowingMarkdown>(undefined);
  const state = useRef({ text: "", isGrowing: true, blocks: [] as readonly Block[], readyAtMs: 0 });
  const [, redraw] = useState(0);
  const now = performance.now();
  const { current } = state;
  const isChanged = text !== current.text || isGrowing !== current.isGrowing;
  const waitMs = isChanged && isGrowing ? current.readyAtMs - now : 0;
  if (isChanged && waitMs <= 0) {
    reader.current ??= new GrowingMarkdown();
    const blocks = reader.current.read(text, isGrowing);
    const endMs = performance.now();
    state.current = { text, isGrowing, blocks, readyAtMs: endMs + SHARE * (endMs - now) };
  }
  useEffect(() => {
    if (waitMs <= 0) return undefined;
    const timer = setTimeout(() => redraw((count) => count + 1), waitMs);
    return () => clearTimeout(timer);
  }, [waitMs > 0]);
  return state.current.blocks;
}

/** Blocks that are drawn, compared and laid out as one: a long answer is thousands of blocks, and some dozens of these. */
const GROUP = 40;

const NOTHING: readonly Block[] = [];

export default function Markdown({ text, isGrowing }: MarkdownProps) {
  // Deferred: a long answer is drawn in slices between which the page answers its reader.
  const blocks = useDeferredValue(useBlocks(text, isGrowing), NOTHING);
  const count = Math.ceil(blocks.length / GROUP);
  return (
    <div className="flex flex-col gap-2.5 break-words">
      {Array.from({ length: count }, (_, index) => (
        <Group
          key={index}
          blocks={blocks.slice(index * GROUP, (index + 1) * GROUP)}
          isOneOfMany={count > 1}
        />
      ))}
    </div>
  );
}

interface GroupProps {
  blocks: readonly Block[];
  /** What is out of sight is not laid out: it takes the browser longer than everything else together. */
  isOneOfMany: boolean;
}

const Group = memo(
  function Group({ blocks, isOneOfMany }: GroupProps) {
    const skipped = isOneOfMany ? " [contain-intrinsic-size:auto_1500px] [content-visibility:auto]" : "";
    return (
      <div className={`flex flex-col gap-2.5${skipped}`}>
        {blocks.map((block, index) => (
          <BlockView key={index} block={block} />
        ))}
      </div>
    );
  },
  (before, after) =>
    before.isOneOfMany === after.isOneOfMany &&
    before.blocks.length === after.blocks.length &&
    before.blocks.every((block, index) => block === after.blocks[index]),
);

const BlockView = memo(function BlockView({ block }: { block: Block }) {
  return drawBlock(block.token, 0, block.isOpen);
});

const HEADINGS = ["h2", "h3", "h4", "h5", "h6", "h6"] as const;
const HEADING_SIZES = ["text-lg", "text-base", "text-sm", "text-sm", "text-sm", "text-sm"] as const;

function drawBlock(token: Token, depth: number, isOpen = false): ReactNode {
  if (depth > MOST_DEPTH) return <PlainText text={token.raw} />;
  switch (token.type) {
    case "paragraph":
      return <p>{drawInline((token as Tokens.Paragraph).tokens, depth)}</p>;
    case "heading": {
      const { depth: level, tokens } = token as Tokens.Heading;
      const Tag = HEADINGS[level - 1] ?? "h6";
      return (
        <Tag className={`mt-1 font-semibold ${HEADING_SIZES[level - 1] ?? ""}`}>
          {drawInline(tokens, depth)}
        </Tag>
      );
    }
    case "code": {
      const { text, lang = "" } = token as Tokens.Code;
      return <CodeBlock text={text} language={lang.split(/[\s{,]/, 1)[0] ?? ""} isOpen={isOpen} />;
    }
    case "blockquote":
      return (
        <blockquote className="flex flex-col gap-2 border-l-2 border-base-300 pl-3 text-muted">
          {drawBlocks((token as Tokens.Blockquote).tokens, depth + 1)}
        </blockquote>
      );
    case "list":
      return <List list={token as Tokens.List} depth={depth} />;
    case "table":
      return <Table table={token as Tokens.Table} />;
    case "hr":
      return <hr className="border-base-300" />;
    case "formula":
      return <Formula token={token as unknown as FormulaToken} />;
    case "text": {
      const { tokens, text } = token as Tokens.Text;
      return tokens ? <span>{drawInline(tokens, depth)}</span> : textOf(text);
    }
    case "checkbox":
      return <Box isChecked={(token as Tokens.Checkbox).checked} />;
    case "space":
    case "def":
      return null;
    default:
      // HTML, and what the reader could not take.
      return <PlainText text={token.raw.trimEnd()} />;
  }
}

function drawBlocks(tokens: readonly Token[], depth: number): ReactNode {
  return tokens.map((token, index) => <Fragment key={index}>{drawBlock(token, depth)}</Fragment>);
}

function Box({ isChecked }: { isChecked: boolean }) {
  const t = useT();
  return (
    <span role="img" aria-label={t(isChecked ? "playground.taskDone" : "playground.taskOpen")}>
      {isChecked ? "☑ " : "☐ "}
    </span>
  );
}

function List({ list, depth }: { list: Tokens.List; depth: number }) {
  const Tag = list.ordered ? "ol" : "ul";
  const start = typeof list.start === "number" && list.start !== 1 ? { start: list.start } : {};
  return (
    <Tag
      {...(list.ordered ? start : {})}
      className={`flex flex-col gap-1 pl-6 ${list.ordered ? "list-decimal" : "list-disc"}`}
    >
      {list.items.map((item, index) => {
        const hasBox = item.tokens.some(isCheckbox);
        return (
          <li key={index} className={item.task ? "list-none" : undefined}>
            {item.task && !hasBox ? <Box isChecked={item.checked === true} /> : null}
            {item.loose ? (
              <div className="flex flex-col gap-2">{drawBlocks(item.tokens, depth + 1)}</div>
            ) : (
              drawBlocks(item.tokens, depth + 1)
            )}
          </li>
        );
      })}
    </Tag>
  );
}

/** The box of a task stands within the first paragraph where items are apart. */
function isCheckbox(token: Token): boolean {
  if (token.type === "checkbox") return true;
  const inner = "tokens" in token ? (token.tokens as Token[] | undefined) : undefined;
  return inner?.some(({ type }) => type === "checkbox") ?? false;
}

const ALIGN = { left: "text-left", center: "text-center", right: "text-right" } as const;

function Table({ table: { header, rows } }: { table: Tokens.Table }) {
  const t = useT();
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? rows : rows.slice(0, MOST_ROWS);
  const cellClass = ({ align }: Tokens.TableCell) =>
    `border border-base-300 px-2 py-1 align-top ${ALIGN[align ?? "left"]}`;
  return (
    <div>
      <div
        className="max-w-full overflow-x-auto"
        role="region"
        tabIndex={0}
        aria-label={t("playground.table")}
      >
        <table className="border-collapse text-[13px] leading-5">
          <thead className="bg-base-200">
            <tr>
              {header.map((cell, index) => (
                <th key={index} scope="col" className={`font-semibold ${cellClass(cell)}`}>
                  {drawInline(cell.tokens, 0)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((row, index) => (
              <tr key={index}>
                {row.map((cell, column) => (
                  <td key={column} className={cellClass(cell)}>
                    {drawInline(cell.tokens, 0)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown.length < rows.length ? (
        <button type="button" className="btn btn-sm btn-default mt-1" onClick={() => setWhole(true)}>
          {t("playground.allRows", { count: rows.length, number: formatNumber(rows.length) })}
        </button>
      ) : null}
    </div>
  );
}

function drawInline(tokens: readonly Token[] | undefined, depth: number): ReactNode {
  return tokens?.map((token, index) => <Fragment key={index}>{drawWord(token, depth + 1)}</Fragment>);
}

const LINE_BREAK = /^<br\s*\/?>$/i;

function drawWord(token: Token, depth: number): ReactNode {
  if (depth > 2 * MOST_DEPTH) return token.raw;
  switch (token.type) {
    case "strong":
      return <strong className="font-semibold">{drawInline((token as Tokens.Strong).tokens, depth)}</strong>;
    case "em":
      return <em>{drawInline((token as Tokens.Em).tokens, depth)}</em>;
    case "del":
      return <del>{drawInline((token as Tokens.Del).tokens, depth)}</del>;
    case "codespan":
      return (
        <code className="rounded-sm bg-base-200 px-1 text-[0.9em]">{(token as Tokens.Codespan).text}</code>
      );
    case "br":
      return <br />;
    case "link":
      return <Link link={token as Tokens.Link} depth={depth} />;
    case "image":
      return <Picture image={token as Tokens.Image} />;
    case "formula":
      return <Formula token={token as unknown as FormulaToken} />;
    case "checkbox":
      return <Box isChecked={(token as Tokens.Checkbox).checked} />;
    case "text": {
      const { tokens, text } = token as Tokens.Text;
      return tokens ? drawInline(tokens, depth) : textOf(text);
    }
    case "escape":
      return (token as Tokens.Escape).text;
    case "html":
      // The one piece of HTML that has no other way to be written in a table.
      return LINE_BREAK.test(token.raw) ? <br /> : token.raw;
    default:
      return token.raw;
  }
}

const SAFE_PROTOCOLS = new Set(["http:", "https:", "mailto:"]);

/** Undefined for everything that is not an address elsewhere: scripts, data, and paths of this console. */
export function safeAddress(href: string): string | undefined {
  try {
    const url = new URL(href);
    return SAFE_PROTOCOLS.has(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}

function Link({ link, depth }: { link: Tokens.Link; depth: number }) {
  const address = safeAddress(link.href);
  if (address === undefined) return drawInline(link.tokens, depth);
  return (
    <a
      className="text-primary underline underline-offset-2"
      href={address}
      title={address}
      target="_blank"
      rel="noopener noreferrer nofollow"
    >
      {drawInline(link.tokens, depth)}
    </a>
  );
}

const INLINE_PICTURE = /^data:image\/(png|jpeg|webp|gif);base64,/;

/** A picture elsewhere is a link: loading it would tell another server what was asked. */
function Picture({ image }: { image: Tokens.Image }) {
  const label = textOf(image.text);
  if (INLINE_PICTURE.test(image.href))
    return <img className="max-h-96 max-w-full rounded-field" src={image.href} alt={label} />;
  const address = safeAddress(image.href);
  if (address === undefined) return label;
  return (
    <a
      className="inline-flex items-center gap-1 text-primary underline underline-offset-2"
      href={address}
      title={address}
      target="_blank"
      rel="noopener noreferrer nofollow"
    >
      <ImageIcon aria-hidden size={14} className="flex-none" />
      {label || new URL(address).host}
    </a>
  );
}
