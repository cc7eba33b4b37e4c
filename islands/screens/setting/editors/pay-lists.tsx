// What the wallet offers: the methods of payment as rows, and the amounts as plain numbers; raw JSON beside both.
import { Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { useT } from "../../../lib/i18n.ts";
import type { OptionEditorProps } from "../editor-props.ts";
import { besideOf, JsonBeside } from "./json-beside.tsx";

interface Method {
  name: string;
  type: string;
  /** Dollars; 0: the least of the rail. */
  min_topup: number;
}

function listOf(text: string): unknown[] | undefined {
  try {
    const list = JSON.parse(text.trim() === "" ? "[]" : text) as unknown;
    return Array.isArray(list) ? list : undefined;
  } catch {
    return undefined;
  }
}

function methodsOf(text: string): Method[] | undefined {
  const list = listOf(text);
  if (!list?.every((each) => typeof each === "object" && each !== null)) return undefined;
  return (list as Partial<Method>[]).map(({ name = "", type = "", min_topup: least = 0 }) => ({
    name: String(name),
    type: String(type),
    min_topup: Number(least) || 0,
  }));
}

const written = (methods: readonly Method[]): string =>
  JSON.stringify(
    methods.map(({ min_topup: least, ...method }) => (least > 0 ? { ...method, min_topup: least } : method)),
  );

export function PayMethodList(props: OptionEditorProps) {
  const t = useT();
  const { value, onChange, disabled, option } = props;
  const methods = methodsOf(value);
  const change = (at: number, part: Partial<Method>) =>
    onChange(written((methods ?? []).map((each, index) => (index === at ? { ...each, ...part } : each))));
  return (
    <JsonBeside
      {...besideOf(props)}
      label={t(`option.title.${option.key}`)}
      isReadable={methods !== undefined}
    >
      <ul className="flex flex-col gap-2" aria-label={t(`option.title.${option.key}`)}>
        {(methods ?? []).map((method, at) => (
          <li key={at} className="flex flex-wrap items-center gap-2">
            <input
              className="input min-w-32 flex-1"
              aria-label={t("editor.pay.name", { number: at + 1 })}
              placeholder={t("editor.pay.namePlace")}
              autoComplete="off"
              disabled={disabled}
              value={method.name}
              onChange={(event) => change(at, { name: event.target.value })}
            />
            <input
              className="input mono min-w-32 flex-1"
              aria-label={t("editor.pay.type", { number: at + 1 })}
              placeholder="alipay"
              autoComplete="off"
              spellCheck={false}
              disabled={disabled}
              value={method.type}
              onChange={(event) => change(at, { type: event.target.value })}
            />
            <input
              className="input w-28 tabular-nums"
              inputMode="numeric"
              aria-label={t("editor.pay.least", { number: at + 1 })}
              placeholder={t("editor.pay.leastPlace")}
              autoComplete="off"
              disabled={disabled}
              value={method.min_topup === 0 ? "" : String(method.min_topup)}
              onChange={(event) =>
                change(at, { min_topup: Number(event.target.value.replaceAll(/\D/g, "")) || 0 })
              }
            />
            <button
              type="button"
              className="btn btn-ghost btn-square btn-sm"
              aria-label={t("editor.pay.remove", { name: method.name || method.type || String(at + 1) })}
              disabled={disabled}
              onClick={() => onChange(written((methods ?? []).filter((_, index) => index !== at)))}
            >
              <Trash2 aria-hidden size={16} />
            </button>
          </li>
        ))}
      </ul>
      <button
        type="button"
        className="btn btn-sm btn-default mt-2"
        disabled={disabled}
        onClick={() => onChange(written([...(methods ?? []), { name: "", type: "", min_topup: 0 }]))}
      >
        <Plus aria-hidden size={14} />
        {t("editor.pay.add")}
      </button>
    </JsonBeside>
  );
}

/** Whole amounts of a text, each once, in their order; blanks and commas part them. */
const amountsIn = (text: string): number[] => [
  ...new Set(
    text
      .split(/[\s,，]+/)
      .filter((each) => each !== "")
      .map(Number),
  ),
];

export function AmountList(props: OptionEditorProps) {
  const t = useT();
  const { value, onChange, labelledBy, describedBy, disabled, failure, option } = props;
  // A comma that was just typed is no amount yet, and must not vanish from under the hand.
  const [typed, setTyped] = useState<{ text: string; of: string }>();
  const amounts = listOf(value);
  const shown = typed?.of === value ? typed.text : (amounts?.join(", ") ?? "");
  return (
    <JsonBeside
      {...besideOf(props)}
      label={t(`option.title.${option.key}`)}
      isReadable={amounts !== undefined}
    >
      <input
        className="input w-full tabular-nums"
        aria-labelledby={labelledBy}
        aria-describedby={describedBy}
        aria-invalid={failure === undefined ? undefined : true}
        inputMode="text"
        autoComplete="off"
        disabled={disabled}
        placeholder="10, 20, 50"
        value={shown}
        onChange={(event) => {
          const next = JSON.stringify(amountsIn(event.target.value));
          setTyped({ text: event.target.value, of: next });
          onChange(next);
        }}
      />
    </JsonBeside>
  );
}
