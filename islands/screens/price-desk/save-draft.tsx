// The changes at hand as a draft: title, reason, and whether users are told of it once it is scheduled.
// Refuses to write over what somebody else saved meanwhile: it offers a draft of its own, or theirs.
import { useSignals } from "@preact/signals-react/runtime";
import { useState } from "react";
import { api, ApiFailure, call } from "../../lib/api.ts";
import { useForm } from "../../lib/form.ts";
import { useT } from "../../lib/i18n.ts";
import { toast, toastFailure } from "../../lib/toasts.ts";
import { setQuery } from "../../lib/url-state.ts";
import { DrawerForm } from "../../ui/drawer.tsx";
import { Notice } from "../../ui/feedback.tsx";
import { SwitchField, TextAreaField, TextField } from "../../ui/form.tsx";
import type { Desk } from "../../ui/price-sheet/desk.ts";
import { draftName, openDraftOf } from "./open-draft.ts";
import { sentOf } from "./use-plan.ts";

const MOST_TITLE = 200;
const MOST_NOTE = 1000;

export interface DraftValues extends Record<string, unknown> {
  title: string;
  note: string;
  announce: boolean;
}

export interface SaveDraftProps {
  desk: Desk;
  onClose: () => void;
}

export default function SaveDraft({ desk, onClose }: SaveDraftProps) {
  useSignals();
  const t = useT();
  const draft = desk.draft.value;
  const [isTaken, setTaken] = useState(false);
  const form = useForm<DraftValues>({
    initial: { title: draft?.title ?? "", note: draft?.note ?? "", announce: draft?.announce ?? false },
  });
  const told = (kept: { id: number; title: string }) =>
    toast({ key: "draft", text: t("plan.draft.saved", { name: draftName(kept) }) });
  const save = async (values: DraftValues, isNew: boolean) => {
    const body = { ...values, title: values.title.trim(), changes: sentOf(desk.changes.peek()) };
    const kept = await call(
      draft && !isNew
        ? api.price.drafts.put({ ...body, id: draft.id, version: draft.version })
        : api.price.drafts.post(body),
    );
    desk.draft.value = openDraftOf(kept);
    told(kept);
  };
  const saveAsNew = async () => {
    try {
      if (await form.submit((values) => save(values, true))) onClose();
    } catch (error) {
      toastFailure(error, "save");
    }
  };
  return (
    <DrawerForm
      isOpen
      isNew
      form={form}
      title={t(draft ? "plan.draft.saveTitle" : "plan.draft.newTitle")}
      onClose={onClose}
      onSave={async (values) => {
        try {
          await save(values, false);
        } catch (error) {
          if (
            error instanceof ApiFailure &&
            ["price_draft_changed", "price_draft_closed"].includes(error.code)
          )
            setTaken(true);
          throw error;
        }
      }}
      actions={
        draft ? (
          <button
            type="button"
            className="btn btn-default"
            disabled={form.isBusy}
            onClick={() => void saveAsNew()}
          >
            {t("plan.draft.saveNew")}
          </button>
        ) : null
      }
    >
      {isTaken && draft ? (
        <div className="mb-4">
          <Notice
            tone="warning"
            action={
              <button
                type="button"
                className="btn btn-sm btn-default"
                onClick={() => {
                  onClose();
                  setQuery({ section: "drafts" });
                }}
              >
                {t("plan.draft.seeTheirs")}
              </button>
            }
          >
            {t("plan.draft.taken", { name: draftName(draft) })}
          </Notice>
        </div>
      ) : null}
      <DraftFields form={form} />
    </DrawerForm>
  );
}

export function DraftFields({ form }: { form: ReturnType<typeof useForm<DraftValues>> }) {
  const t = useT();
  return (
    <>
      <TextField
        form={form}
        name="title"
        label={t("plan.draft.title")}
        hint={t("plan.draft.titleHint")}
        limit={MOST_TITLE}
      />
      <TextAreaField
        form={form}
        name="note"
        label={t("plan.note")}
        hint={t("plan.noteHint")}
        limit={MOST_NOTE}
      />
      <SwitchField
        form={form}
        name="announce"
        label={t("plan.draft.announce")}
        hint={t("plan.draft.announceHint")}
      />
    </>
  );
}
