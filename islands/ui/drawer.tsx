// The right-hand sheet: details, and forms with a sticky footer. Native dialog: focus is trapped and returned.
// Refuses to lose changes: leaving with some asks once.
import { X } from "lucide-react";
import { useEffect, useId, useRef, useState } from "react";
import type { KeyboardEvent, ReactNode, RefObject } from "react";
import { curlOf } from "../lib/curl.ts";
import type { CurlRequest } from "../lib/curl.ts";
import { giveFocusBack } from "../lib/focus.ts";
import type { Form, Values } from "../lib/form.ts";
import { useT } from "../lib/i18n.ts";
import { keysText } from "../lib/keys.ts";
import { confirm } from "./confirm.tsx";
import { CopyButton } from "./copy-button.tsx";
import { openLayer, toast, toastFailure } from "../lib/toasts.ts";
import { guardLeaving } from "../lib/url-state.ts";

export interface DrawerProps {
  isOpen: boolean;
  title: ReactNode;
  /** Called after the question about unsaved changes, if there was one. */
  onClose: () => void;
  isDirty?: boolean;
  width?: "peek" | "normal" | "wide";
  /** Beside the title: badges, a copy button. */
  aside?: ReactNode;
  footer?: ReactNode;
  /** Single keys inside the drawer, while nobody types and no button has the focus; shortcuts of the page rest. */
  onKey?: (event: KeyboardEvent<HTMLDialogElement>) => void;
  /**
   * Stands beside a page that goes on to work, where the window has room for both. Names what is shown: when that
   * changes, the focus comes here, so that the keys of the drawer go on from it.
   */
  beside?: string;
  children: ReactNode;
}

/** Below it a drawer is a sheet over everything. */
const ROOM_FOR_BOTH = "(min-width: 1024px)";
/** What Escape closes before a drawer beside the page. */
const OTHER_LAYER = "dialog[open]:not([data-beside]), :popover-open";
const WIDTHS = { peek: "max-w-120", normal: "max-w-140", wide: "max-w-200" } as const;

/** Whether a key belongs to the control that has the focus. */
function isForControl(event: KeyboardEvent): boolean {
  const { target } = event;
  if (!(target instanceof HTMLElement)) return false;
  if (target.matches("input, select, textarea, [contenteditable]")) return true;
  return event.key === "Enter" && target.matches("button, a[href], summary");
}

export function Drawer({ isOpen, ...rest }: DrawerProps) {
  return isOpen ? <OpenDrawer {...rest} /> : null;
}

function OpenDrawer({
  title,
  onClose,
  isDirty = false,
  width = "normal",
  aside,
  footer,
  onKey,
  beside,
  children,
}: Omit<DrawerProps, "isOpen">) {
  const t = useT();
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  const asking = useRef(false);
  const [isBeside] = useState(() => beside !== undefined && matchMedia(ROOM_FOR_BOTH).matches);

  useEffect(() => {
    const opener = document.activeElement;
    const box = dialog.current;
    if (isBeside) box?.show();
    else box?.showModal();
    const leaveLayer = box && !isBeside ? openLayer(box) : undefined;
    const find = (selector: string) => box?.querySelector<HTMLElement>(selector);
    // React focuses instead of writing `autofocus`, and opening a dialog moves the focus away again.
    const first =
      find("[data-autofocus]") ??
      find(
        "[autofocus], .drawer-body :is(input, select, textarea):not([disabled], .drawer-body details:not([open]) *)",
      );
    // Without a field there is nothing to fill in: the keys of the drawer work at once.
    (first ?? box)?.focus();
    return () => {
      leaveLayer?.();
      box?.close();
      giveFocusBack(opener);
    };
  }, []);

  useEffect(() => {
    if (!isDirty) return undefined;
    const onUnload = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", onUnload);
    return () => window.removeEventListener("beforeunload", onUnload);
  }, [isDirty]);

  /** Once at a time: to the second question the answer is no. */
  const mayLeave = async () => {
    if (asking.current) return false;
    if (!isDirty) return true;
    asking.current = true;
    const yes = await confirm({
      title: t("form.leave.title"),
      text: t("form.leave.text"),
      action: t("form.leave.action"),
      isDanger: true,
    });
    asking.current = false;
    return yes;
  };
  const leave = async () => {
    if (await mayLeave()) onClose();
  };
  const latestMayLeave = useRef(mayLeave);
  latestMayLeave.current = mayLeave;
  useEffect(() => (isDirty ? guardLeaving(() => latestMayLeave.current()) : undefined), [isDirty]);
  useBeside(dialog, isBeside ? beside : undefined, () => void leave());

  return (
    <dialog
      ref={dialog}
      tabIndex={-1}
      className={isBeside ? "beside" : "modal modal-end"}
      data-beside={isBeside ? "" : undefined}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        void leave();
      }}
      onMouseDown={(event) => {
        if (event.target === dialog.current) void leave();
      }}
      onKeyDown={(event) => {
        const isChord = event.ctrlKey || event.metaKey || event.altKey;
        if (onKey && !isChord && !event.nativeEvent.isComposing && !isForControl(event)) onKey(event);
        if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
        event.preventDefault();
        dialog.current?.querySelector("form")?.requestSubmit();
      }}
    >
      <div className={`modal-box ${WIDTHS[width]}`}>
        <header>
          <h2 id={id} className="min-w-0 truncate">
            {title}
          </h2>
          {aside}
          <button
            type="button"
            className="btn btn-ghost btn-square btn-sm ml-auto"
            aria-label={t("common.close")}
            onClick={() => void leave()}
          >
            <X aria-hidden />
          </button>
        </header>
        <div className="drawer-body">{children}</div>
        {footer ? <footer>{footer}</footer> : null}
      </div>
    </dialog>
  );
}

/** What a modal dialog does by itself: Escape from anywhere on the page, and the focus with what is newly shown. */
function useBeside(
  dialog: RefObject<HTMLDialogElement | null>,
  shown: string | undefined,
  leave: () => void,
): void {
  const latest = useRef(leave);
  latest.current = leave;
  const isBeside = shown !== undefined;
  useEffect(() => {
    if (!isBeside) return undefined;
    const onKey = (event: globalThis.KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented || document.querySelector(OTHER_LAYER)) return;
      event.preventDefault();
      latest.current();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [isBeside]);
  useEffect(() => {
    const box = dialog.current;
    if (isBeside && box && !box.contains(document.activeElement)) box.focus({ preventScroll: true });
  }, [isBeside, shown, dialog]);
}

export interface DrawerFormProps<V extends Values> extends Pick<
  DrawerProps,
  "isOpen" | "title" | "onClose" | "width" | "aside" | "children"
> {
  form: Form<V>;
  /** Runs after validation; `changed` holds what differs from the loaded values. Throw to keep the drawer open. */
  onSave: (values: V, changed: Partial<V>) => Promise<void>;
  /** Label of the primary button; default "Save". */
  saveLabel?: string;
  /** Saves although nothing was changed (new items). */
  isNew?: boolean;
  /** Further buttons left of the primary one: "Save and test". */
  actions?: ReactNode;
  /** The call that saving would make, for "Copy as curl"; secrets are the caller's to leave out. */
  curl?: (values: V) => CurlRequest;
}

export function DrawerForm<V extends Values>({
  form,
  onSave,
  saveLabel,
  isNew = false,
  actions,
  curl,
  children,
  onClose,
  ...drawer
}: DrawerFormProps<V>) {
  const t = useT();
  const id = useId();
  const save = async () => {
    if (!isNew && !form.isDirty) {
      toast({ key: "unchanged", tone: "info", text: t("form.unchanged") });
      return;
    }
    try {
      if (await form.submit(onSave)) onClose();
    } catch (error) {
      toastFailure(error, "save");
    }
  };
  return (
    <Drawer
      {...drawer}
      isDirty={form.isDirty}
      onClose={() => {
        form.reset();
        onClose();
      }}
      footer={
        <>
          <span className="mr-auto text-xs text-muted max-sm:hidden">
            <kbd className="kbd kbd-sm">{keysText("mod+Enter")}</kbd>
            {curl ? (
              <CopyButton
                text={() => curlOf(curl(form.values))}
                label={t("table.copyCurl")}
                withText
                className="ml-2"
              />
            ) : null}
          </span>
          <button
            type="button"
            className="btn btn-default"
            onClick={(event) =>
              event.currentTarget.closest("dialog")?.dispatchEvent(new Event("cancel", { cancelable: true }))
            }
          >
            {t("common.cancel")}
          </button>
          {actions}
          <button
            type="submit"
            form={id}
            className="btn btn-primary"
            disabled={form.isBusy}
            aria-busy={form.isBusy}
          >
            {form.isBusy ? <span className="loading loading-spinner loading-xs" aria-hidden /> : null}
            {saveLabel ?? t("common.save")}
          </button>
        </>
      }
    >
      <form
        id={id}
        ref={form.element}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        {children}
      </form>
    </Drawer>
  );
}
