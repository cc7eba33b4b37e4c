// One edit for all channels of a tag, or of a selection: every field is kept until it is set, and a preview says what follows.
// Refuses to blank a field by accident: what is not switched on is not sent.
import { useEffect, useId, useState } from "react";
import type { ReactNode } from "react";
import { api, call } from "../../lib/api.ts";
import { useForm } from "../../lib/form.ts";
import type { Errors, Form } from "../../lib/form.ts";
import { useT } from "../../lib/i18n.ts";
import { lazyPart } from "../../lib/lazy-part.tsx";
import type { Translate } from "../../lib/i18n.ts";
import { DrawerForm } from "../../ui/drawer.tsx";
import { toast, toastFailure } from "../../lib/toasts.ts";
import { NumberField, TextField } from "../../ui/form.tsx";
import { namesOf } from "./row.ts";
import { TokenField } from "./token-field.tsx";
import { isJsonObject } from "./values.ts";
import type { ChannelRow } from "../../lib/wire.ts";

const MappingField = lazyPart(() => import("./mapping-field.tsx"));

const FIELDS = ["tag", "priority", "weight", "models", "groups", "modelMapping"] as const;
type FieldName = (typeof FIELDS)[number];

export interface TagValues extends Record<string, unknown> {
  tag: string;
  priority: number | undefined;
  weight: number | undefined;
  models: string;
  groups: string;
  modelMapping: string;
  /** Names of the fields that are set, in a comma list. */
  set: string;
}

export interface TagDrawerProps {
  /** The tag whose channels are changed; undefined: `rows` are. */
  tag: string | undefined;
  rows: readonly ChannelRow[] | undefined;
  groups: readonly string[];
  onClose: () => void;
  onSaved: () => void;
}

const BLANK: TagValues = {
  tag: "",
  priority: undefined,
  weight: undefined,
  models: "",
  groups: "",
  modelMapping: "",
  set: "",
};

/** What all of them have in common stands in the fields from the start; where they differ a field is empty. */
function commonValues(rows: readonly ChannelRow[]): TagValues {
  const same = <T,>(read: (row: ChannelRow) => T, none: T): T => {
    const [first] = rows;
    if (!first) return none;
    return rows.every((row) => read(row) === read(first)) ? read(first) : none;
  };
  return {
    tag: same((row) => row.tag ?? "", ""),
    priority: same<number | undefined>((row) => row.priority, undefined),
    weight: same<number | undefined>((row) => row.weight, undefined),
    models: same((row) => namesOf(row.models).join(","), ""),
    groups: same((row) => namesOf(row.group).join(","), ""),
    modelMapping: same((row) => row.model_mapping, ""),
    set: "",
  };
}

export default function TagDrawer({ tag, rows: given, groups, onClose, onSaved }: TagDrawerProps) {
  const t = useT();
  const [rows, setRows] = useState<readonly ChannelRow[] | undefined>(given);
  useEffect(() => {
    if (tag === undefined) return;
    call(api.channel.search.get({ query: { tag } })).then(
      (found) => setRows(found),
      (error: unknown) => {
        toastFailure(error);
        onClose();
      },
    );
    // Once for each tag: the drawer is made anew for another one.
  }, [tag]);
  return rows === undefined ? null : <LoadedDrawer {...{ t, tag, rows, groups, onClose, onSaved }} />;
}

interface LoadedProps {
  t: Translate;
  tag: string | undefined;
  rows: readonly ChannelRow[];
  groups: readonly string[];
  onClose: () => void;
  onSaved: () => void;
}

const isSet = (values: TagValues, name: FieldName) => namesOf(values.set).includes(name);

function problemsOf(t: Translate, values: TagValues, tag: string | undefined): Errors<TagValues> {
  return {
    ...(isSet(values, "priority") && !isIntegerFrom(values.priority, -999)
      ? { priority: t("channel.priorityWrong") }
      : {}),
    ...(isSet(values, "weight") && !isIntegerFrom(values.weight, 0)
      ? { weight: t("channel.weightWrong") }
      : {}),
    ...(isSet(values, "models") && namesOf(values.models).length === 0
      ? { models: t("channel.modelsMissing") }
      : {}),
    ...(isSet(values, "groups") && namesOf(values.groups).length === 0 ? { groups: t("form.required") } : {}),
    ...(isSet(values, "modelMapping") && !isJsonObject(values.modelMapping)
      ? { modelMapping: t("channel.mappingNotJson") }
      : {}),
    ...(isSet(values, "tag") && tag === undefined && values.tag.trim() === ""
      ? { tag: t("channel.tagMissing") }
      : {}),
  };
}

/** One call for a tag; channels of a selection follow each other. Only what is set is sent. */
async function saveFields(
  values: TagValues,
  tag: string | undefined,
  rows: readonly ChannelRow[],
): Promise<void> {
  const body = {
    ...(isSet(values, "priority") ? { priority: values.priority ?? 0 } : {}),
    ...(isSet(values, "weight") ? { weight: values.weight ?? 0 } : {}),
    ...(isSet(values, "models") ? { models: namesOf(values.models).join(",") } : {}),
    ...(isSet(values, "modelMapping") ? { model_mapping: values.modelMapping.trim() } : {}),
  };
  const groups = namesOf(values.groups).join(",");
  const newTag = values.tag.trim();
  if (tag !== undefined) {
    await call(
      api.channel.tag.put({
        tag,
        ...body,
        ...(isSet(values, "groups") ? { groups } : {}),
        ...(isSet(values, "tag") ? { new_tag: newTag } : {}),
      }),
    );
    return;
  }
  for (const { id } of rows) {
    await call(
      api.channel.put({
        id,
        ...body,
        ...(isSet(values, "groups") ? { group: groups } : {}),
        ...(isSet(values, "tag") ? { tag: newTag } : {}),
      }),
    );
  }
}

function LoadedDrawer({ t, tag, rows, groups, onClose, onSaved }: LoadedProps) {
  const [initial] = useState(() => (rows.length > 0 ? commonValues(rows) : BLANK));
  const form = useForm<TagValues>({ initial, validate: (values) => problemsOf(t, values, tag) });
  const { values } = form;
  const chosen = FIELDS.filter((name) => isSet(values, name));

  const save = async () => {
    if (chosen.length === 0) {
      toast({ key: "unchanged", tone: "info", text: t("channel.tagUnchanged") });
      throw new DOMException("kept open", "AbortError");
    }
    await saveFields(values, tag, rows);
    toast({ key: "channel tag", text: t("channel.tagSaved", { count: rows.length }) });
    onSaved();
  };

  return (
    <DrawerForm
      form={form}
      isOpen
      isNew
      width="wide"
      title={
        tag === undefined
          ? t("channel.editManyTitle", { count: rows.length })
          : t("channel.tagEditTitle", { tag })
      }
      onClose={onClose}
      onSave={save}
    >
      <p className="text-muted mb-4">{t("channel.tagEditHint")}</p>
      <TagFields form={form} t={t} tag={tag} rows={rows} groups={groups} />
      <section
        className="mb-4 rounded-box border border-base-300 bg-base-200 p-3"
        aria-label={t("channel.tagPreview")}
        aria-live="polite"
      >
        <p className="font-semibold">{t("channel.tagPreview")}</p>
        {chosen.length === 0 ? (
          <p className="text-muted">{t("channel.tagPreviewNone")}</p>
        ) : (
          <ul>
            {chosen.map((name) => (
              <li key={name} className="before:text-muted before:content-['→_']">
                {consequence({ t, name, values, tag, rows })}
              </li>
            ))}
          </ul>
        )}
      </section>
    </DrawerForm>
  );
}

interface TagFieldsProps extends Pick<LoadedProps, "t" | "tag" | "rows" | "groups"> {
  form: Form<TagValues>;
}

/** Every field behind its switch. */
function TagFields({ form, t, tag, rows, groups }: TagFieldsProps) {
  const part = (name: FieldName, label: string, field: (isDisabled: boolean) => ReactNode) => (
    <SetField form={form} name={name} label={label} t={t}>
      {field(!isSet(form.values, name))}
    </SetField>
  );
  const number = (name: "priority" | "weight", label: string, min: number) =>
    part(name, label, (isDisabled) => (
      <NumberField
        form={form}
        name={name}
        label={label}
        min={min}
        step={1}
        isDisabled={isDisabled}
        {...mixedPlaceholder(rows, name, t)}
      />
    ));
  const tagLabel = t(tag === undefined ? "channel.tag" : "channel.tagName");
  return (
    <>
      {part("tag", tagLabel, (isDisabled) => (
        <TextField
          form={form}
          name="tag"
          label={tagLabel}
          {...(tag === undefined ? {} : { hint: t("channel.tagNameHint") })}
          isDisabled={isDisabled}
          input={{ maxLength: 64, autoComplete: "off" }}
        />
      ))}
      {number("priority", t("channel.priority"), -999)}
      {number("weight", t("channel.weight"), 0)}
      {part("models", t("channel.modelsTitle"), (isDisabled) => (
        <TokenField
          form={form}
          name="models"
          label={t("channel.modelsTitle")}
          isMono
          isDisabled={isDisabled}
          suggestions={[...new Set(rows.flatMap((row) => namesOf(row.models)))]}
          placeholder={t("channel.addModel")}
          repeated={t("channel.modelsExist")}
        />
      ))}
      {part("groups", t("channel.groups"), (isDisabled) => (
        <TokenField
          form={form}
          name="groups"
          label={t("channel.groups")}
          isDisabled={isDisabled}
          suggestions={groups}
          placeholder={t("channel.addGroup")}
        />
      ))}
      {part("modelMapping", t("channel.modelMapping"), (isDisabled) => (
        <MappingField form={form} isDisabled={isDisabled} />
      ))}
    </>
  );
}

function isIntegerFrom(value: number | undefined, least: number): boolean {
  return value !== undefined && Number.isInteger(value) && value >= least;
}

function mixedPlaceholder(rows: readonly ChannelRow[], name: "priority" | "weight", t: Translate) {
  const first = rows[0]?.[name];
  return rows.every((row) => row[name] === first) ? {} : { input: { placeholder: t("channel.mixed") } };
}

interface ConsequenceOptions extends Pick<LoadedProps, "t" | "tag" | "rows"> {
  name: FieldName;
  values: TagValues;
}

/** One sentence for each field that is set: what changes, and of how many channels it really differs. */
function consequence({ t, name, values, tag, rows }: ConsequenceOptions): string {
  const next = { priority: values.priority, weight: values.weight };
  switch (name) {
    case "tag": {
      const to = values.tag.trim();
      if (to !== "") return t("channel.previewTag", { tag: to, count: rows.length });
      return t("channel.previewDissolve", { tag: tag ?? "", count: rows.length });
    }
    case "priority":
    case "weight": {
      const count = rows.filter((row) => row[name] !== next[name]).length;
      return t(`channel.preview.${name}`, { value: next[name] ?? "–", count });
    }
    case "models": {
      const text = namesOf(values.models).join(",");
      const count = rows.filter((row) => namesOf(row.models).join(",") !== text).length;
      return t("channel.preview.models", { value: namesOf(values.models).length, count });
    }
    case "groups": {
      const text = namesOf(values.groups).join(",");
      const count = rows.filter((row) => namesOf(row.group).join(",") !== text).length;
      return t("channel.preview.groups", { value: namesOf(values.groups).join(", ") || "–", count });
    }
    case "modelMapping": {
      const count = rows.filter((row) => row.model_mapping.trim() !== values.modelMapping.trim()).length;
      return values.modelMapping.trim() === "" && tag !== undefined
        ? t("channel.preview.mappingKept")
        : t("channel.preview.mapping", { count });
    }
  }
}

interface SetFieldProps {
  form: Form<TagValues>;
  name: FieldName;
  label: string;
  t: Translate;
  children: ReactNode;
}

/** Keep or set, beside the field that it opens. */
function SetField({ form, name, label, t, children }: SetFieldProps) {
  const id = useId();
  const chosen = namesOf(form.values.set);
  const isOn = chosen.includes(name);
  return (
    <div
      className="flex items-start gap-4 max-sm:flex-col max-sm:items-stretch max-sm:gap-1"
      data-set={isOn ? "" : undefined}
    >
      <label
        htmlFor={id}
        className="flex w-26 flex-none cursor-pointer items-center gap-2 pt-6.5 max-sm:w-auto max-sm:pt-0"
      >
        <input
          id={id}
          type="checkbox"
          role="switch"
          className="toggle"
          aria-label={t("channel.setField", { field: label })}
          checked={isOn}
          onChange={(event) => {
            const others = chosen.filter((each) => each !== name);
            form.set("set", (event.target.checked ? [...others, name] : others).join(","));
            if (!event.target.checked) form.revert(name);
          }}
        />
        <span className={isOn ? "" : "text-muted"}>{t(isOn ? "channel.set" : "channel.keep")}</span>
      </label>
      <div className="min-w-0 grow">{children}</div>
    </div>
  );
}
