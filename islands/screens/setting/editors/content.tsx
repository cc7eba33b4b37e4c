// Texts that pages show (notice, home, about, footer): typed on one side, seen in both themes, with what would be cut out.
// Refuses to show its own idea of the text: the server sanitises, and what it answers is what pages will show.
import { Eye } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { api, call, failureMessage } from "../../../lib/api.ts";
import type { ResponseData } from "../../../lib/api.ts";
import { useT } from "../../../lib/i18n.ts";
import { afterPress } from "../../../lib/press.ts";
import { Notice } from "../../../ui/feedback.tsx";
import type { OptionEditorProps } from "../editor-props.ts";
import { BothThemes } from "./both-themes.tsx";

type Preview = ResponseData<typeof api.option.preview.post>;
type ContentKey = "Notice" | "HomePageContent" | "About" | "Footer";

/** The newest answer counts, whichever arrives last. */
function usePreview(key: string) {
  const [shown, setShown] = useState<{ of: string; preview: Preview }>();
  const [failure, setFailure] = useState<string>();
  const wanted = useRef<string>(undefined);
  const ask = async (text: string) => {
    wanted.current = text;
    try {
      const preview = await call(api.option.preview.post({ key: key as ContentKey, value: text }));
      if (wanted.current !== text) return;
      setShown({ of: text, preview });
      setFailure(undefined);
    } catch (error) {
      if (wanted.current === text) setFailure(failureMessage(error));
    }
  };
  return { shown, failure, ask };
}

export function ContentEditor(props: OptionEditorProps) {
  const { option, value, onChange, failure, labelledBy, describedBy, disabled } = props;
  const t = useT();
  const { shown, failure: unseen, ask } = usePreview(option.key);
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    if (isOpen && shown?.of !== value) void ask(value);
    // Asked anew when it is opened; what is typed meanwhile waits until the field is left.
  }, [isOpen]);
  const isOld = shown !== undefined && shown.of !== value;
  return (
    <div>
      <textarea
        className="textarea mono"
        rows={Math.min(16, Math.max(4, value.split("\n").length + 1))}
        aria-labelledby={labelledBy}
        aria-describedby={describedBy}
        aria-invalid={failure === undefined ? undefined : true}
        disabled={disabled}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        onBlur={(event) => {
          const text = event.target.value;
          if (text !== (shown?.of ?? option.value)) afterPress(() => void ask(text));
        }}
      />
      <button
        type="button"
        className="btn btn-default btn-sm mt-2"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        <Eye aria-hidden size={14} />
        {t(isOpen ? "editor.content.hide" : "editor.content.preview")}
      </button>
      {unseen === undefined ? null : (
        <p className="mt-1 text-xs text-error" role="alert">
          {unseen}
        </p>
      )}
      {shown && shown.of.trim() !== "" ? <Removed removed={shown.preview.removed} /> : null}
      {isOpen && shown ? (
        <>
          {isOld ? <p className="mt-2 text-xs text-muted">{t("editor.content.old")}</p> : null}
          <Shown preview={shown.preview} option={option.key} />
        </>
      ) : null}
    </div>
  );
}

/** What pages leave out, in words. */
function Removed({ removed }: Pick<Preview, "removed">) {
  const t = useT();
  if (removed.length === 0) return null;
  return (
    <div className="mt-2">
      <Notice tone="warning">
        <span>{t("editor.content.removed")}</span>
        <ul className="mt-1 flex flex-wrap gap-x-3 gap-y-1 text-dense">
          {removed.map(({ kind, name, count }) => (
            <li key={`${kind} ${name}`} className="break-all">
              {t(`editor.content.removed.${kind}`, { name })}
              {count > 1 ? ` ×${count}` : ""}
            </li>
          ))}
        </ul>
      </Notice>
    </div>
  );
}

function Shown({ preview, option }: { preview: Preview; option: string }) {
  const t = useT();
  if (preview.frame_url !== "")
    return (
      <p className="mt-2 text-dense break-all">{t("editor.content.frame", { url: preview.frame_url })}</p>
    );
  if (preview.html === "")
    return (
      <p className="mt-2 text-dense text-muted">
        {t(option === "Notice" ? "editor.content.emptyNotice" : "editor.content.empty")}
      </p>
    );
  return (
    <BothThemes>
      <div
        // As the pages have it.
        className={option === "Footer" ? "text-center text-xs text-muted [&_a]:underline" : "prose-page"}
        // Following a link would leave the settings, and what is not saved yet.
        onClickCapture={(event) => {
          if (event.target instanceof Element && event.target.closest("a")) event.preventDefault();
        }}
        dangerouslySetInnerHTML={{ __html: preview.html }}
      />
    </BothThemes>
  );
}
