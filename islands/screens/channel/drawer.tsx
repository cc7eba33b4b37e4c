// The channel editor: provider, connection, models, routing, rewrite; saving, and saving with a test.
// Refuses a channel without name, key (when new) or models, and texts that are no JSON; keys are never echoed.
import { useEffect, useRef, useState } from "react";
import { keyHint, providerForm, splitsKeysByLine } from "../../../src/shared/provider-forms.ts";
import { api, ApiFailure, call } from "../../lib/api.ts";
import { useForm } from "../../lib/form.ts";
import { language, useT } from "../../lib/i18n.ts";
import { lazyPart } from "../../lib/lazy-part.tsx";
import { readJson, writeItem } from "../../lib/storage.ts";
import { confirm } from "../../ui/confirm.tsx";
import { DrawerForm } from "../../ui/drawer.tsx";
import { Field, SecretField, Section, SwitchField, TextAreaField, TextField } from "../../ui/form.tsx";
import { KeysList } from "./keys-list.tsx";
import type { ChannelPageData, ChannelRow, ChannelSummary } from "./row.ts";
import { namesOf } from "./row.ts";
import { TypeField } from "./type-field.tsx";
import type { ChannelValues } from "./values.ts";
import {
  bodyOf,
  changedBody,
  isJsonObject,
  isProxy,
  NEW_CHANNEL,
  REWRITE_FIELDS,
  trimmedBase,
  valuesOf,
  wrongNetworks,
} from "./values.ts";

const RoutingPart = lazyPart(() => import("./routing-part.tsx"));
const RewritePart = lazyPart(() => import("./rewrite-part.tsx"));

const CUSTOM_TYPE = 8;
const JSON_FIELDS = ["modelMapping", "statusCodeMapping", "paramOverride", "otherSettings"] as const;
/** Related models where a type has none of its own. */
const RELATED = /^(gpt-|text-)/;

export interface ChannelDrawerProps {
  /** undefined: a new channel. */
  row: ChannelRow | undefined;
  data: ChannelPageData;
  tags: ChannelSummary["tags"];
  onClose: () => void;
  /** Ids of what was saved; several for a batch of keys. */
  onSaved: (ids: readonly number[], shouldTest: boolean) => void;
}

type Presets = Record<string, readonly string[] | null>;

/** Where the last lists are kept; the specification names the key. */
const MODELS_KEY = "channel_models";

function isPresets(value: unknown): value is Presets {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return false;
  return Object.values(value).every(
    (each) => each === null || (Array.isArray(each) && each.every((name) => typeof name === "string")),
  );
}

/** Model lists of the product: those of the last time at once, the present ones when they are there. */
function useModelLists(): { presets: Presets; all: readonly string[] } {
  const [lists, setLists] = useState(() => ({
    presets: readJson<Presets>(MODELS_KEY, isPresets, {}),
    all: [] as readonly string[],
  }));
  useEffect(() => {
    let isOver = false;
    void Promise.all([call(api.models.get()), call(api.channel.models.get())]).then(
      ([presets, all]) => {
        writeItem(MODELS_KEY, JSON.stringify(presets));
        if (!isOver) setLists({ presets: presets as Presets, all: all.map(({ id }) => id) });
      },
      // Without them the editor works; only filling in is not offered.
      () => undefined,
    );
    return () => {
      isOver = true;
    };
  }, []);
  return lists;
}

export default function ChannelDrawer({ row, data, tags, onClose, onSaved }: ChannelDrawerProps) {
  const t = useT();
  const isNew = row === undefined;
  const { presets, all } = useModelLists();
  const shouldTest = useRef(false);
  const [initial] = useState(() => (row ? valuesOf(row) : NEW_CHANNEL));
  const form = useForm<ChannelValues>({
    initial,
    ...(isNew ? { draftKey: "channel", secrets: ["key", "other", "proxy"] as const } : {}),
    validate: (values) => ({
      ...(values.name.trim() === "" ? { name: t("channel.nameMissing") } : {}),
      ...(isNew && values.key.trim() === "" ? { key: t("channel.keyMissing") } : {}),
      ...(namesOf(values.models).length === 0 ? { models: t("channel.modelsMissing") } : {}),
      ...(namesOf(values.groups).length === 0 ? { groups: t("form.required") } : {}),
      ...(Number.isInteger(values.priority ?? 0) && (values.priority ?? 0) >= -999
        ? {}
        : { priority: t("channel.priorityWrong") }),
      ...(Number.isInteger(values.weight ?? 0) && (values.weight ?? 0) >= 0
        ? {}
        : { weight: t("channel.weightWrong") }),
      ...(isProxy(values.proxy) ? {} : { proxy: t("channel.proxyWrong") }),
      ...networksError(values.allowNetworks, (line) => t("channel.networkWrong", { line })),
      ...Object.fromEntries(
        JSON_FIELDS.filter((name) => !isJsonObject(values[name])).map((name) => [
          name,
          t(name === "modelMapping" ? "channel.mappingNotJson" : "channel.notJson"),
        ]),
      ),
    }),
  });
  const { values, set } = form;
  const to = language.value;
  const provider = providerForm(values.type);
  const fieldOf = (name: string) => provider?.fields?.find((each) => each.name === name);
  const base = fieldOf("base_url");
  const other = fieldOf("other");
  const organization = fieldOf("openai_organization");
  const own = presets[String(values.type)] ?? [];
  const related = own.length > 0 ? own : all.filter((name) => RELATED.test(name));
  const keyLines = values.key.split("\n").filter((line) => line.trim() !== "").length;
  const keys = splitsKeysByLine(values.type) ? keyLines : Math.min(keyLines, 1);
  const endsInVersion = /\/v1\/*$/.test(values.baseUrl.trim()) && values.type !== CUSTOM_TYPE;
  const OtherField = other?.multiline ? TextAreaField : TextField;
  const rewritten = REWRITE_FIELDS.filter((name) => values[name] !== "" && values[name] !== false).length;
  const [wasRewritten] = useState(rewritten > 0);
  const isRewriteWrong = REWRITE_FIELDS.some((name) => form.errors[name] !== undefined);

  const save = async () => {
    const withTest = shouldTest.current;
    if (endsInVersion) {
      const goOn = await confirm({
        title: t("channel.v1Title"),
        text: t("channel.v1Text"),
        action: t("channel.v1Action"),
      });
      if (!goOn) throw new DOMException("kept open", "AbortError");
    }
    try {
      const ids = row
        ? [(await call(api.channel.put({ id: row.id, ...changedBody(initial, values) }))).id]
        : await create(values, keys > 1);
      onSaved(ids, withTest);
    } catch (error) {
      throw atField(error);
    }
  };

  /** A new channel takes one key; the others join it in a second call, since several would make channels of their own. */
  const create = async (now: ChannelValues, hasSeveral: boolean): Promise<readonly number[]> => {
    const body = { key: "", ...bodyOf(now) };
    if (!hasSeveral || !now.keysTogether) return call(api.channel.post(body));
    const [first = ""] = body.key.split("\n").filter((line) => line.trim() !== "");
    const ids = await call(api.channel.post({ ...body, key: first }));
    for (const id of ids) await call(api.channel.put({ id, key: body.key }));
    return ids;
  };

  const pickType = (type: number) => {
    const before = fieldOf("other")?.defaultValue ?? "";
    const preset = providerForm(type)?.fields?.find((each) => each.name === "other")?.defaultValue ?? "";
    if (values.other === before) set("other", preset);
    const old = own.join(",");
    // Presets follow the type as long as nobody has chosen models by hand.
    if (isNew && (values.models === "" || values.models === old))
      set("models", (presets[String(type)] ?? []).join(","));
    set("type", type);
  };

  return (
    <DrawerForm
      form={form}
      isOpen
      isNew={isNew}
      width="wide"
      title={row ? t("channel.edit", { name: row.name }) : t("channel.new")}
      saveLabel={row ? t("common.save") : t("common.create")}
      onClose={onClose}
      onSave={save}
      curl={(current) => ({
        method: row ? "PUT" : "POST",
        path: "/api/channel/",
        body: row
          ? { id: row.id, ...withoutSecrets(changedBody(initial, current)) }
          : withoutSecrets({ key: "", ...bodyOf(current) }),
      })}
      actions={
        <button
          type="button"
          className="btn btn-default"
          disabled={form.isBusy}
          onClick={() => {
            if (row && !form.isDirty) {
              onSaved([row.id], true);
              onClose();
              return;
            }
            shouldTest.current = true;
            form.element.current?.requestSubmit();
            // Saving has begun, or validation has refused: a later plain save tests nothing.
            shouldTest.current = false;
          }}
        >
          {t("channel.saveAndTest")}
        </button>
      }
    >
      <Section title={t("channel.section.provider")}>
        <TypeField form={form} onPick={pickType} />
        {provider && (provider.status === "retired" || provider.status === "later") ? (
          <p className="mt-1 text-xs text-error mb-4">{t(`channel.type.${provider.status}`)}</p>
        ) : null}
      </Section>
      <Section title={t("channel.section.connection")}>
        <TextField
          form={form}
          name="name"
          label={t("channel.name")}
          isRequired
          input={{ autoFocus: true, autoComplete: "off" }}
        />
        <Field
          form={form}
          name="baseUrl"
          label={base?.label[to] ?? t("channel.baseUrl")}
          isRequired={base?.required === true}
          hint={
            endsInVersion ? (
              <span role="status" className="text-warning-text">
                {t("channel.v1Text")}
              </span>
            ) : (
              (base?.hint?.[to] ?? t("channel.baseUrlHint"))
            )
          }
        >
          {(control) => (
            <input
              {...control}
              type="url"
              name="baseUrl"
              className="input mono"
              placeholder={provider?.baseUrl ?? ""}
              autoComplete="off"
              spellCheck={false}
              value={values.baseUrl}
              onChange={(event) => set("baseUrl", event.target.value)}
              onBlur={() => {
                if (values.baseUrl !== trimmedBase(values.baseUrl))
                  set("baseUrl", trimmedBase(values.baseUrl));
                control.onBlur();
              }}
            />
          )}
        </Field>
        <SecretField
          form={form}
          name="key"
          label={fieldOf("key")?.label[to] ?? t("channel.key")}
          isSet={!isNew}
          isRequired={isNew}
          rows={isNew ? 3 : 2}
          hint={[
            isNew ? "" : t("form.secret.keep"),
            keyHint(values.type)[to],
            keys > 1
              ? t(isNew && !values.keysTogether ? "channel.keyCount" : "channel.keyTurns", { count: keys })
              : "",
          ]
            .filter(Boolean)
            .join(" · ")}
        />
        {isNew && keys > 1 ? (
          <SwitchField
            form={form}
            name="keysTogether"
            label={t("channel.keysTogether")}
            hint={t("channel.keysTogetherHint")}
          />
        ) : null}
        {row && row.key_count > 1 ? <KeysList id={row.id} count={row.key_count} /> : null}
        {other ? (
          <OtherField
            form={form}
            name="other"
            label={other.label[to]}
            hint={other.hint?.[to]}
            isRequired={other.required === true}
            isMono
          />
        ) : null}
        {organization ? (
          <TextField
            form={form}
            name="organization"
            label={organization.label[to]}
            hint={organization.hint?.[to]}
            isMono
          />
        ) : null}
      </Section>
      <RoutingPart
        form={form}
        row={row}
        related={related}
        all={all}
        groups={data.groups}
        tags={tags.map(({ tag }) => tag)}
      />
      <Section
        title={t("channel.section.rewrite")}
        isFolded={!wasRewritten && !isRewriteWrong}
        count={rewritten}
      >
        <RewritePart form={form} models={namesOf(values.models)} upstreamModels={related} />
      </Section>
    </DrawerForm>
  );
}

/** The form's names of fields that the server calls otherwise. */
const FIELDS: Record<string, keyof ChannelValues & string> = {
  base_url: "baseUrl",
  openai_organization: "organization",
  group: "groups",
  test_model: "testModel",
  model_mapping: "modelMapping",
  status_code_mapping: "statusCodeMapping",
  param_override: "paramOverride",
  setting: "otherSettings",
};

function atField(error: unknown): unknown {
  if (!(error instanceof ApiFailure) || error.field === undefined) return error;
  const field = error.code === "channel_proxy_invalid" ? "proxy" : (FIELDS[error.field] ?? error.field);
  return new ApiFailure(error.code, error.status, error.message, field, undefined, error.requestId);
}

function networksError(text: string, say: (line: string) => string): { allowNetworks?: string } {
  const [wrong] = wrongNetworks(text);
  return wrong === undefined ? {} : { allowNetworks: say(wrong) };
}

/** For a command that is shown around: no key, and no name and password of a proxy. */
function withoutSecrets<T extends { key?: string | undefined; setting?: string | undefined }>(body: T): T {
  return {
    ...body,
    ...(body.key === undefined ? {} : { key: "<key>" }),
    ...(body.setting === undefined
      ? {}
      : { setting: body.setting.replace(/(:\/\/)[^"/@]+@/g, "$1<user>:<password>@") }),
  };
}
