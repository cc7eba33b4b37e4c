// The editor's section on keys: how many work, each with its state, what can be done with them at once, and what saving the
// channel changes: whose turn is next, and the caps over all keys.
import { useSignals } from "@preact/signals-react/runtime";
import { MoreHorizontal, Plus, RefreshCw } from "lucide-react";
import { useRef, useState } from "react";
import { KEY_MODES } from "../../../../src/shared/enums.ts";
import type { Form } from "../../../lib/form.ts";
import { useT } from "../../../lib/i18n.ts";
import type { Translate } from "../../../lib/i18n.ts";
import { toast } from "../../../lib/toasts.ts";
import type { ChannelKeys, ChannelKeyState, ChannelRow } from "../../../lib/wire.ts";
import { confirm } from "../../../ui/confirm.tsx";
import { FailureNotice } from "../../../ui/feedback.tsx";
import { NumberField, Section, SelectField } from "../../../ui/form.tsx";
import { Menu } from "../../../ui/menu.tsx";
import type { ChannelValues } from "../values.ts";
import { AddKeys } from "./add-keys.tsx";
import { KeyForm } from "./key-form.tsx";
import { KeyRow } from "./key-row.tsx";
import { KEYS_PER_PAGE, useKeys } from "./use-keys.ts";
import type { Keys } from "./use-keys.ts";
import { nameOf, timeOf } from "./words.ts";

/** More are asked about before they are tested: each test is a call. */
const TESTED_UNASKED = 20;

export interface KeysPartProps {
  form: Form<ChannelValues>;
  /** undefined: a new channel. */
  row: ChannelRow | undefined;
  /** The key field holds several. */
  hasSeveralKeys: boolean;
  onChange: () => void;
}

export default function KeysPart({ form, row, hasSeveralKeys, onChange }: KeysPartProps) {
  const t = useT();
  useSignals();
  const { keysTogether } = form.values;
  const hasTurns = row ? row.key_count > 1 || hasSeveralKeys : hasSeveralKeys && keysTogether;
  return (
    <Section title={t("channel.section.keys")}>
      {row && row.key_count > 0 ? (
        <KeyManager channelId={row.id} type={row.type} onChange={onChange} />
      ) : null}
      {hasTurns ? (
        <SelectField
          form={form}
          name="keyMode"
          label={t("channel.keys.mode")}
          hint={t(`channel.keys.modeHint.${form.values.keyMode}`)}
          choices={KEY_MODES.map((mode) => ({ value: mode, label: t(`channel.keys.mode.${mode}`) }))}
        />
      ) : null}
      <p className="mb-2 text-dense text-muted">{t("channel.keys.capsHint")}</p>
      <div className="grid gap-x-4 sm:grid-cols-3">
        <NumberField form={form} name="maxConcurrency" label={t("form.limits.atOnce")} min={0} step={1} />
        <NumberField form={form} name="rpmLimit" label={t("form.limits.rpm")} min={0} step={1} />
        <NumberField form={form} name="tpmLimit" label={t("form.limits.tpm")} min={0} step={1} />
      </div>
    </Section>
  );
}

/** "8 of 10 on, 1 resting until 14:02, 1 off by itself" */
function countWords(t: Translate, page: ChannelKeys): string {
  const { enabled_count: on, resting_count: resting, auto_disabled_count: autoOff } = page;
  const off = page.manual_disabled_count;
  const total = on + autoOff + off;
  return [
    t("channel.keys.fit", { fit: on - resting, total }),
    ...(resting > 0 ? [t("channel.keys.resting", { count: resting, time: timeOf(page.resting_until) })] : []),
    ...(autoOff > 0 ? [t("channel.keys.autoOff", { count: autoOff })] : []),
    ...(off > 0 ? [t("channel.keys.off", { count: off })] : []),
  ].join(t("channel.keys.comma"));
}

function KeyManager({
  channelId,
  type,
  onChange,
}: {
  channelId: number;
  type: number;
  onChange: () => void;
}) {
  const t = useT();
  useSignals();
  const keys = useKeys(channelId, onChange);
  const [isAdding, setAdding] = useState(false);
  const addButton = useRef<HTMLButtonElement>(null);
  const { page } = keys;
  const closeAdding = () => {
    setAdding(false);
    setTimeout(() => addButton.current?.focus());
  };
  return (
    <div className="mb-4" role="group" aria-label={t("channel.keysTitle")}>
      <div className="mb-1 flex min-h-8 flex-wrap items-center gap-1">
        <p role="status" className="mr-auto text-dense font-semibold">
          {page ? countWords(t, page) : ""}
        </p>
        <button
          ref={addButton}
          type="button"
          className="btn btn-sm btn-default"
          aria-expanded={isAdding}
          onClick={() => setAdding(true)}
        >
          <Plus aria-hidden size={14} />
          {t("channel.keys.add")}
        </button>
        <button
          type="button"
          className="btn btn-ghost btn-sm btn-square"
          aria-label={t("channel.keys.refresh")}
          title={t("common.refresh")}
          onClick={keys.refresh}
        >
          <RefreshCw aria-hidden size={14} />
        </button>
        {page ? <BulkMenu keys={keys} page={page} /> : null}
      </div>
      {isAdding ? (
        <AddKeys type={type} isBusy={keys.busy.has("add")} onAdd={keys.add} onClose={closeAdding} />
      ) : null}
      {keys.failure === undefined ? null : (
        <FailureNotice text={keys.failure} onRetry={() => Promise.resolve(keys.refresh())} />
      )}
      {page ? <KeyList keys={keys} page={page} onGone={() => addButton.current?.focus()} /> : null}
      {page && page.total > KEYS_PER_PAGE ? <Pager page={page} onPage={keys.show} /> : null}
    </div>
  );
}

function Pager({ page, onPage }: { page: ChannelKeys; onPage: (page: number) => void }) {
  const t = useT();
  return (
    <nav className="flex items-center gap-2 pt-1 text-dense" aria-label={t("channel.keys.pages")}>
      <span className="mr-auto text-muted tabular-nums">
        {t("channel.keys.page", { page: page.page, last: page.total_pages })}
      </span>
      <button
        type="button"
        className="btn btn-sm btn-default"
        disabled={page.page <= 1}
        onClick={() => onPage(page.page - 1)}
      >
        {t("channel.keys.previous")}
      </button>
      <button
        type="button"
        className="btn btn-sm btn-default"
        disabled={page.page >= page.total_pages}
        onClick={() => onPage(page.page + 1)}
      >
        {t("channel.keys.next")}
      </button>
    </nav>
  );
}

function BulkMenu({ keys, page }: { keys: Keys; page: ChannelKeys }) {
  const t = useT();
  const total = page.enabled_count + page.auto_disabled_count + page.manual_disabled_count;
  const offCount = total - page.enabled_count;
  const testAll = async () => {
    const goesOn =
      total <= TESTED_UNASKED ||
      (await confirm({
        title: t("channel.keys.testAllTitle", { count: total }),
        text: t("channel.keys.testAllText"),
        action: t("channel.keys.testAll"),
      }));
    if (goesOn) await keys.run({ action: "test_all_keys" });
  };
  const disableAll = async () => {
    const question = {
      title: t("channel.keys.disableAllTitle", { count: total }),
      text: t("channel.keys.disableAllText"),
      action: t("channel.keys.disableAll"),
      isDanger: true,
    };
    if (await confirm(question)) await keys.run({ action: "disable_all_keys" });
  };
  const deleteOff = async () => {
    const question = {
      title: t("channel.keys.deleteOffTitle", { count: offCount }),
      text: t("channel.keys.deleteText"),
      action: t("channel.keys.deleteOff"),
      isDanger: true,
      ...(offCount > 20 ? { typed: String(offCount) } : {}),
    };
    if (await confirm(question)) await keys.run({ action: "delete_disabled_keys" });
  };
  return (
    <Menu
      label={t("channel.keys.more")}
      groups={[
        [{ id: "test", label: t("channel.keys.testAll"), onSelect: () => void testAll() }],
        [
          {
            id: "on",
            label: t("channel.keys.enableAll"),
            isDisabled: offCount === 0,
            onSelect: () => void keys.run({ action: "enable_all_keys" }),
          },
          { id: "off", label: t("channel.keys.disableAll"), onSelect: () => void disableAll() },
        ],
        [
          {
            id: "delete",
            label: t("channel.keys.deleteOff"),
            isDanger: true,
            // One stays: a channel without a key is another channel.
            isDisabled: offCount === 0 || offCount === total,
            onSelect: () => void deleteOff(),
          },
        ],
      ]}
    >
      {keys.busy.has("test_all_keys") ? (
        <span className="loading loading-spinner loading-xs" aria-hidden />
      ) : (
        <MoreHorizontal aria-hidden size={16} />
      )}
    </Menu>
  );
}

/** `onGone`: where the focus goes when a key has left with its buttons. */
function KeyList({ keys, page, onGone }: { keys: Keys; page: ChannelKeys; onGone: () => void }) {
  const t = useT();
  const [edited, setEdited] = useState<number>();
  const list = useRef<HTMLUListElement>(null);
  const close = (key: ChannelKeyState) => {
    setEdited(undefined);
    setTimeout(() =>
      list.current?.querySelector<HTMLElement>(`[data-key="${key.key_id}"] [aria-haspopup]`)?.focus(),
    );
  };
  const remove = async (key: ChannelKeyState) => {
    const name = nameOf(t, key);
    const question = {
      title: t("channel.keys.deleteTitle", { name }),
      text: t("channel.keys.deleteText"),
      action: t("common.delete"),
      isDanger: true,
    };
    if (!(await confirm(question))) return;
    if (await keys.run({ action: "delete_key", key_id: key.key_id })) setTimeout(onGone);
  };
  const setOn = async (key: ChannelKeyState, isOn: boolean) => {
    const id = key.key_id;
    if (!(await keys.run({ action: isOn ? "enable_key" : "disable_key", key_id: id }))) return;
    toast({
      key: "channel keys",
      text: t(isOn ? "channel.keys.switchedOn" : "channel.keys.switchedOff", { name: nameOf(t, key) }),
      ...(isOn ? {} : { undo: async () => void (await keys.run({ action: "enable_key", key_id: id })) }),
    });
  };
  return (
    <ul ref={list}>
      {page.keys.map((key) =>
        edited === key.key_id ? (
          <li key={key.key_id} className="py-2">
            <KeyForm
              keyState={key}
              name={nameOf(t, key)}
              isBusy={keys.busy.has(key.key_id)}
              onSave={(edit) => void keys.run(edit).then((isSaved) => isSaved && close(key))}
              onCancel={() => close(key)}
            />
          </li>
        ) : (
          <KeyRow
            key={key.key_id}
            keyState={key}
            isBusy={keys.busy.has(key.key_id)}
            test={keys.tests.get(key.key_id)}
            isLast={page.total === 1}
            onTest={() => void keys.run({ action: "test_key", key_id: key.key_id })}
            onRest={(minutes) => void keys.run({ action: "rest_key", key_id: key.key_id, minutes })}
            onSwitch={(isOn) => void setOn(key, isOn)}
            onEdit={() => setEdited(key.key_id)}
            onDelete={() => void remove(key)}
          />
        ),
      )}
    </ul>
  );
}
