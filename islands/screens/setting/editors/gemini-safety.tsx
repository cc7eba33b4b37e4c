// What Gemini holds back, a choice for each kind of content; kinds without one get what stands under "default".
// Refuses to lose what it does not know: thresholds and categories of other names stay and can be seen.
import { useT } from "../../../lib/i18n.ts";
import { parseMap, writeMap } from "../../../lib/json-map.ts";
import type { OptionEditorProps } from "../editor-props.ts";
import { besideOf, JsonBeside } from "./json-beside.tsx";

const DEFAULT = "default";
const CATEGORIES = [
  "HARM_CATEGORY_HARASSMENT",
  "HARM_CATEGORY_HATE_SPEECH",
  "HARM_CATEGORY_SEXUALLY_EXPLICIT",
  "HARM_CATEGORY_DANGEROUS_CONTENT",
  "HARM_CATEGORY_CIVIC_INTEGRITY",
];
const THRESHOLDS = ["OFF", "BLOCK_NONE", "BLOCK_ONLY_HIGH", "BLOCK_MEDIUM_AND_ABOVE", "BLOCK_LOW_AND_ABOVE"];

/** Category -> threshold, in their order; undefined for what is no map of texts. */
function read(text: string): Map<string, string> | undefined {
  const { entries, problem } = parseMap(text, "text");
  if (problem) return undefined;
  return new Map(entries.map(({ key, json }) => [key, JSON.parse(json) as string]));
}

function write(settings: ReadonlyMap<string, string>): string {
  const text = writeMap([...settings].map(([key, value]) => ({ key, json: JSON.stringify(value) })));
  return text === "" ? "{}" : text;
}

export function GeminiSafety(props: OptionEditorProps) {
  const t = useT();
  const settings = read(props.value);
  const others = [...(settings?.keys() ?? [])].filter((key) => key !== DEFAULT && !CATEGORIES.includes(key));
  const set = (category: string, threshold: string) => {
    const next = new Map(settings);
    if (threshold === "") next.delete(category);
    else next.set(category, threshold);
    props.onChange(write(next));
  };
  return (
    <JsonBeside
      {...besideOf(props)}
      label={t(`option.title.${props.option.key}`)}
      isReadable={settings !== undefined}
    >
      <div className="grid gap-x-4 gap-y-2 sm:grid-cols-[minmax(0,1fr)_minmax(0,1fr)]">
        {[DEFAULT, ...CATEGORIES, ...others].map((category) => {
          const chosen = settings?.get(category) ?? "";
          const isKnown = category === DEFAULT || CATEGORIES.includes(category);
          return (
            <label key={category} className="contents">
              <span className="self-center text-dense">
                {isKnown ? t(`editor.safety.category.${category}`) : <span className="mono">{category}</span>}
              </span>
              <select
                className="select mb-1 sm:mb-0"
                disabled={props.disabled}
                value={chosen}
                onChange={(event) => set(category, event.target.value)}
              >
                <option value="">
                  {t(category === DEFAULT ? "editor.safety.none" : "editor.safety.asDefault")}
                </option>
                {[...new Set([...THRESHOLDS, ...(chosen === "" ? [] : [chosen])])].map((threshold) => (
                  <option key={threshold} value={threshold}>
                    {THRESHOLDS.includes(threshold) ? t(`editor.safety.threshold.${threshold}`) : threshold}
                  </option>
                ))}
              </select>
            </label>
          );
        })}
      </div>
    </JsonBeside>
  );
}
