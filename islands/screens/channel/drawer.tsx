// The channel editor: provider, connection, models, routing, rewrite; saving, and saving with a test.
// Refuses a channel without name, key (when new) or models, and texts that are no JSON; keys are never echoed.
import { useRef, useState } from "react";
import { providerForm } from "../../../src/shared/provider-forms.ts";
import { useForm } from "../../lib/form.ts";
import type { Errors } from "../../lib/form.ts";
import { useT } from "../../lib/i18n.ts";
import type { Translate } from "../../lib/i18n.ts";
import { lazyPart } from "../../lib/lazy-part.tsx";
import type { ChannelRow, ChannelSummary } from "../../lib/wire.ts";
import { confirm } from "../../ui/confirm.tsx";
import { DrawerForm } from "../../ui/drawer.tsx";
import { Section } from "../../ui/form.tsx";
import { ConnectionPart, endsInVersion, keyCount, providerField } from "./connection-part.tsx";
import { useModelLists } from "./model-lists.ts";
import type { ModelLists } from "./model-lists.ts";
import type { ChannelPageData } from "./row.ts";
import { namesOf } from "./row.ts";
import { saveChannel, withoutSecrets } from "./save.ts";
import { TypeField } from "./type-field.tsx";
import type { ChannelValues } from "./values.ts";
import {
  bodyOf,
  changedBody,
  isJsonObject,
  isProxy,
  NEW_CHANNEL,
  REWRITE_FIELDS,
  valuesOf,
  wrongNetworks,
} from "./values.ts";

const KeysPart = lazyPart(() => import("./keys/keys-part.tsx"));
const RoutingPart = lazyPart(() => import("./routing-part.tsx"));
const HealthPart = lazyPart(() => import("./health-part.tsx"));
const UpstreamPart = lazyPart(() => import("./upstream-part.tsx"));
const RewritePart = lazyPart(() => import("./rewrite-part.tsx"));

const JSON_FIELDS = [
  "modelMapping",
  "statusCodeMapping",
  "paramOverride",
  "headerOverride",
  "otherSettings",
] as const;
const CAPS = ["maxConcurrency", "rpmLimit", "tpmLimit"] as const;
/** Related models where a type has none of its own. */
const RELATED = /^(gpt-|text-)/;

export interface ChannelDrawerProps {
  /** undefined: a new channel. */
  row: ChannelRow | undefined;
  data: ChannelPageData;
  tags: ChannelSummary["tags"];
  onClose: () => void;
  /** Keys were added, switched or deleted: at once, without saving. */
  onKeysChanged: () => void;
  /** Ids of what was saved (several for a batch of keys), and its models. */
  onSaved: (ids: readonly number[], shouldTest: boolean, models: readonly string[]) => void;
}

function isEmptyOrIntegerFrom(value: number | undefined, least: number): boolean {
  return Number.isInteger(value ?? 0) && (value ?? 0) >= least;
}

function problemsOf(t: Translate, values: ChannelValues, isNew: boolean): Errors<ChannelValues> {
  const [wrongNetwork] = wrongNetworks(values.allowNetworks);
  return {
    ...(values.name.trim() === "" ? { name: t("channel.nameMissing") } : {}),
    ...(isNew && values.key.trim() === "" ? { key: t("channel.keyMissing") } : {}),
    ...(namesOf(values.models).length === 0 ? { models: t("channel.modelsMissing") } : {}),
    ...(namesOf(values.groups).length === 0 ? { groups: t("form.required") } : {}),
    ...(isEmptyOrIntegerFrom(values.priority, -999) ? {} : { priority: t("channel.priorityWrong") }),
    ...(isEmptyOrIntegerFrom(values.weight, 0) ? {} : { weight: t("channel.weightWrong") }),
    ...(isEmptyOrIntegerFrom(values.maxInputTokens, 0)
      ? {}
      : { maxInputTokens: t("channel.maxInputTokensWrong") }),
    ...Object.fromEntries(
      CAPS.filter((name) => !isEmptyOrIntegerFrom(values[name], 0)).map((name) => [
        name,
        t("form.limits.badNumber"),
      ]),
    ),
    ...(isProxy(values.proxy) ? {} : { proxy: t("channel.proxyWrong") }),
    ...(wrongNetwork === undefined
      ? {}
      : { allowNetworks: t("channel.networkWrong", { line: wrongNetwork }) }),
    ...Object.fromEntries(
      JSON_FIELDS.filter((name) => !isJsonObject(values[name])).map((name) => [
        name,
        t(name === "modelMapping" ? "channel.mappingNotJson" : "channel.notJson"),
      ]),
    ),
  };
}

/** The type's own models; where it has none, those that most providers serve. */
function relatedModels({ presets, all }: ModelLists, type: number): readonly string[] {
  const own = presets[String(type)] ?? [];
  return own.length > 0 ? own : all.filter((name) => RELATED.test(name));
}

export default function ChannelDrawer({
  row,
  data,
  tags,
  onClose,
  onKeysChanged,
  onSaved,
}: ChannelDrawerProps) {
  const t = useT();
  const isNew = row === undefined;
  const lists = useModelLists();
  const shouldTest = useRef(false);
  const [initial] = useState(() => (row ? valuesOf(row) : NEW_CHANNEL));
  const form = useForm<ChannelValues>({
    initial,
    ...(row ? { awayKey: `channel ${row.id}` } : { draftKey: "channel" }),
    secrets: ["key", "other", "proxy", ...(row ? (["headerOverride", "otherSettings"] as const) : [])],
    validate: (values) => problemsOf(t, values, isNew),
  });
  const { values, set } = form;
  const provider = providerForm(values.type);
  const related = relatedModels(lists, values.type);
  const rewritten = REWRITE_FIELDS.filter((name) => values[name] !== "" && values[name] !== false).length;
  const [wasRewritten] = useState(rewritten > 0);
  const isRewriteWrong = REWRITE_FIELDS.some((name) => form.errors[name] !== undefined);

  const save = async () => {
    const withTest = shouldTest.current;
    if (endsInVersion(values)) {
      const goOn = await confirm({
        title: t("channel.v1Title"),
        text: t("channel.v1Text"),
        action: t("channel.v1Action"),
      });
      if (!goOn) throw new DOMException("kept open", "AbortError");
    }
    const ids = await saveChannel({ row, initial, values, hasSeveralKeys: keyCount(values) > 1 });
    onSaved(ids, withTest, namesOf(values.models));
  };
  const pickType = (type: number) => {
    const modelsOf = (of: number) => (lists.presets[String(of)] ?? []).join(",");
    const otherOf = (of: number) => providerField(of, "other")?.defaultValue ?? "";
    if (values.other === otherOf(values.type)) set("other", otherOf(type));
    // Presets follow the type as long as nobody has chosen models by hand.
    if (isNew && (values.models === "" || values.models === modelsOf(values.type)))
      set("models", modelsOf(type));
    set("type", type);
  };
  const saveAndTest = () => {
    if (row && !form.isDirty) {
      onSaved([row.id], true, []);
      onClose();
      return;
    }
    shouldTest.current = true;
    form.element.current?.requestSubmit();
    // Saving has begun, or validation has refused: a later plain save tests nothing.
    shouldTest.current = false;
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
        <button type="button" className="btn btn-default" disabled={form.isBusy} onClick={saveAndTest}>
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
      <ConnectionPart form={form} row={row} />
      <KeysPart form={form} row={row} hasSeveralKeys={keyCount(values) > 1} onChange={onKeysChanged} />
      {row ? <HealthPart id={row.id} /> : null}
      <RoutingPart
        form={form}
        row={row}
        related={related}
        all={lists.all}
        groups={data.groups}
        tags={tags.map(({ tag }) => tag)}
      />
      {row ? <UpstreamPart form={form} id={row.id} /> : null}
      <Section
        title={t("channel.section.rewrite")}
        isFolded={!wasRewritten && !isRewriteWrong}
        count={rewritten}
      >
        <RewritePart
          form={form}
          channelId={row?.id}
          models={namesOf(values.models)}
          upstreamModels={related}
        />
      </Section>
    </DrawerForm>
  );
}
