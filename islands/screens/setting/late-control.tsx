// The controls that the first paint can do without: secrets, domains as tags, time zones, maps beside their raw JSON.
// Refuses to show a secret again: it is set or not set, and can be replaced or emptied.
import { Eye, EyeOff, X } from "lucide-react";
import { useId, useState } from "react";
import { useT } from "../../lib/i18n.ts";
import type { MapKind } from "../../lib/json-map.ts";
import { MapEditor } from "../../ui/map-editor.tsx";
import { fieldProps } from "./control.tsx";
import type { OptionEditorProps } from "./editor-props.ts";
import { titleOf } from "./names.ts";

/** A table of more rows than anybody reads would hold the page up; the text does not. */
const LONGEST_IN_CELLS = 4000;
const MAP_KINDS: Partial<Record<string, MapKind>> = {
  text_map: "text",
  number_map: "number",
  json_map: "json",
};

export interface LateControlProps extends OptionEditorProps {
  /** Something was typed that is not saved. */
  isTyped: boolean;
  /** Forgets what was typed. */
  onRevert: () => void;
}

export default function LateControl(props: LateControlProps) {
  const { option, value } = props;
  if (option.secret) return <SecretControl {...props} />;
  if (option.kind === "csv") return <TagsControl {...props} />;
  if (option.kind === "time_zone") return <ZoneControl {...props} />;
  const mapKind = MAP_KINDS[option.kind];
  if (mapKind === undefined || value.length > LONGEST_IN_CELLS) return <JsonControl {...props} />;
  return <MapControl {...props} kind={mapKind} />;
}

function MapControl({ kind, ...props }: OptionEditorProps & { kind: MapKind }) {
  const t = useT();
  const { option, value, onChange, failure, describedBy, disabled } = props;
  return (
    <MapEditor
      label={titleOf(option)}
      value={value}
      onChange={onChange}
      kind={kind}
      keyLabel={t("setting.map.key")}
      valueLabel={t("setting.map.value")}
      describedBy={describedBy}
      isInvalid={failure === undefined ? undefined : true}
      isDisabled={disabled}
    />
  );
}

/** Indented, where it is JSON at all. */
function formatted(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function JsonControl(props: OptionEditorProps) {
  const { value, onChange } = props;
  // What is stored stands on one line: it is laid out for reading, and counts as a change only once it is typed in.
  const [shown, setShown] = useState<{ text: string; of: string }>();
  const text = shown?.of === value ? shown.text : formatted(value);
  return (
    <textarea
      {...fieldProps(props)}
      className="textarea mono"
      rows={Math.min(14, Math.max(3, text.split("\n").length))}
      spellCheck={false}
      value={text}
      onChange={(event) => {
        setShown({ text: event.target.value, of: event.target.value });
        onChange(event.target.value);
      }}
    />
  );
}

/** A field that was emptied again means "keep"; emptying what is set is a button of its own. */
function SecretControl(props: LateControlProps) {
  const t = useT();
  const { option, value, onChange, isTyped, onRevert } = props;
  const [isReplacing, setReplacing] = useState(false);
  const [isShown, setShown] = useState(false);
  const Icon = isShown ? EyeOff : Eye;
  const name = titleOf(option);
  if (option.isSet && value === "" && !isReplacing) {
    return (
      <div className="flex min-h-9 flex-wrap items-center gap-2">
        <span className={isTyped ? "text-error" : "font-medium"}>
          {t(isTyped ? "setting.secret.emptied" : "setting.secret.set")}
        </span>
        <button
          type="button"
          className="btn btn-default btn-sm"
          aria-label={t("setting.secret.replaceNamed", { name })}
          onClick={() => setReplacing(true)}
        >
          {t("setting.secret.replace")}
        </button>
        <button
          type="button"
          className="btn btn-ghost btn-sm"
          aria-label={t(isTyped ? "setting.secret.keepNamed" : "setting.secret.emptyNamed", { name })}
          onClick={() => (isTyped ? onRevert() : onChange(""))}
        >
          {t(isTyped ? "setting.secret.keep" : "setting.secret.empty")}
        </button>
      </div>
    );
  }
  return (
    <div className="input" aria-invalid={props.failure === undefined ? undefined : true}>
      <input
        {...fieldProps(props)}
        autoFocus={isReplacing}
        className="grow mono"
        type={isShown ? "text" : "password"}
        autoComplete="new-password"
        spellCheck={false}
        placeholder={t(option.isSet ? "setting.secret.unchanged" : "setting.secret.notSet")}
        value={value}
        onChange={(event) => (event.target.value === "" ? onRevert() : onChange(event.target.value))}
        onBlur={() => setReplacing(false)}
      />
      <button
        type="button"
        className="btn btn-ghost btn-square btn-xs"
        aria-pressed={isShown}
        aria-label={t("form.secret.show")}
        onMouseDown={(event) => event.preventDefault()}
        onClick={() => setShown(!isShown)}
      >
        <Icon aria-hidden size={14} />
      </button>
    </div>
  );
}

/** Such as example.com; the server asks no more of it. */
const DOMAIN = /^(?!-)[\p{L}\p{N}-]{1,63}(\.[\p{L}\p{N}-]{1,63})+$/u;

function TagsControl(props: OptionEditorProps) {
  const t = useT();
  const id = useId();
  const { option, value, onChange, disabled } = props;
  const [typed, setTyped] = useState("");
  const [problem, setProblem] = useState<string>();
  const tags = value
    .split(",")
    .map((each) => each.trim())
    .filter((each) => each !== "");
  const add = () => {
    const names = typed
      .toLowerCase()
      .split(/[\s,，;]+/)
      .filter((each) => each !== "");
    const wrong = names.find((name) => !DOMAIN.test(name));
    const known = names.find((name) => tags.includes(name));
    if (wrong !== undefined) setProblem(t("setting.problem.domain", { name: wrong }));
    else if (known !== undefined) setProblem(t("setting.problem.domainTwice", { name: known }));
    else {
      setProblem(undefined);
      setTyped("");
      if (names.length > 0) onChange([...tags, ...new Set(names)].join(","));
    }
  };
  return (
    <div>
      <ul className="mb-2 flex flex-wrap gap-1" aria-labelledby={props.labelledBy}>
        {tags.map((tag) => (
          <li key={tag} className="badge badge-ghost gap-1 pr-0.5">
            {tag}
            <button
              type="button"
              className="btn btn-ghost btn-square btn-xs"
              disabled={disabled}
              aria-label={t("form.map.remove", { key: tag })}
              onClick={() => onChange(tags.filter((each) => each !== tag).join(","))}
            >
              <X aria-hidden size={12} />
            </button>
          </li>
        ))}
      </ul>
      <div className="flex gap-2">
        <input
          {...fieldProps(props)}
          className="input max-w-80"
          aria-labelledby={undefined}
          aria-label={t("setting.tags.new", { name: titleOf(option) })}
          aria-describedby={problem === undefined ? props.describedBy : id}
          aria-invalid={problem !== undefined || props.failure !== undefined || undefined}
          placeholder="example.com"
          autoComplete="off"
          spellCheck={false}
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          onKeyDown={(event) => {
            if (event.nativeEvent.isComposing || event.ctrlKey || event.metaKey) return;
            if (event.key !== "Enter" && event.key !== ",") return;
            event.preventDefault();
            add();
          }}
        />
        <button type="button" className="btn btn-default" disabled={disabled} onClick={add}>
          {t("setting.tags.add")}
        </button>
      </div>
      {problem === undefined ? null : (
        <p id={id} className="mt-1 text-xs text-error" role="alert">
          {problem}
        </p>
      )}
    </div>
  );
}

function ZoneControl(props: OptionEditorProps) {
  const t = useT();
  const id = useId();
  const { value, onChange } = props;
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return (
    <div>
      <input
        {...fieldProps(props)}
        className="input"
        list={id}
        autoComplete="off"
        spellCheck={false}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
      <datalist id={id}>
        {Intl.supportedValuesOf("timeZone").map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
      {own === value ? null : (
        <button
          type="button"
          className="btn btn-ghost btn-xs mt-1 -ml-2 h-auto text-xs font-medium text-left"
          onClick={() => onChange(own)}
        >
          {t("setting.ownZone", { zone: own })}
        </button>
      )}
    </div>
  );
}
