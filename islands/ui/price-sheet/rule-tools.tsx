// What the hosted tools of a model cost: a name and dollars per thousand calls each.
import { Plus } from "lucide-react";
import { useT } from "../../lib/i18n.ts";
import type { RulesDraft } from "./rule-draft.ts";
import { IconButton, RuleInput } from "./rule-input.tsx";

export interface RuleToolsProps {
  tools: RulesDraft["tools"];
  problemOf: (field: string) => string | undefined;
  onLeave: (field: string) => void;
  onChange: (tools: RulesDraft["tools"]) => void;
  onAdd: () => void;
}

const KNOWN_TOOLS = ["web_search", "file_search"];

export function RuleTools({ tools, problemOf, onLeave, onChange, onAdd }: RuleToolsProps) {
  const t = useT();
  const set = (id: number, part: { name?: string; price?: string }) =>
    onChange(tools.map((each) => (each.id === id ? { ...each, ...part } : each)));
  return (
    <fieldset className="min-w-0">
      <legend className="text-dense font-medium">{t("rule.edit.tools")}</legend>
      {tools.map(({ id, name, price }) => (
        <div key={id} className="mt-1 flex items-start gap-2" role="group" aria-label={name}>
          <div className="grid min-w-0 grow grid-cols-2 gap-2">
            <RuleInput
              label={t("rule.edit.tool")}
              value={name}
              suggestions={KNOWN_TOOLS}
              problem={problemOf(`tool.${id}.name`)}
              onChange={(text) => set(id, { name: text })}
              onLeave={() => onLeave(`tool.${id}.name`)}
            />
            <RuleInput
              label={t("rule.edit.toolPrice")}
              value={price}
              prefix="$"
              isNumber
              problem={problemOf(`tool.${id}.price`)}
              onChange={(text) => set(id, { price: text })}
              onLeave={() => onLeave(`tool.${id}.price`)}
            />
          </div>
          <span className="mt-5">
            <IconButton
              label={t("rule.edit.removeTool", { name })}
              onClick={() => onChange(tools.filter((each) => each.id !== id))}
            />
          </span>
        </div>
      ))}
      <button type="button" className="btn btn-ghost btn-sm mt-1 -ml-3 text-primary" onClick={onAdd}>
        <Plus aria-hidden size={14} />
        {t("rule.edit.addTool")}
      </button>
    </fieldset>
  );
}
