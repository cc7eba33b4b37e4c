// Pictures in full size: arrows walk, the address can be copied, the original opened. Loaded on first use.
// Refuses to show a broken picture silently: it says that the picture could not be loaded.
import { ChevronLeft, ChevronRight, ExternalLink, X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useT } from "../lib/i18n.ts";
import { CopyButton } from "./copy-button.tsx";

interface ViewedImage {
  id: number | string;
  url: string;
  /** Text in place of the picture: its prompt. */
  alt: string;
}

export interface ImageViewerProps {
  images: readonly ViewedImage[];
  at: number;
  onStep: (at: number) => void;
  onClose: () => void;
}

export default function ImageViewer({ images, at, onStep, onClose }: ImageViewerProps) {
  const t = useT();
  const dialog = useRef<HTMLDialogElement>(null);
  const [broken, setBroken] = useState<string>();
  const image = images[at];
  useEffect(() => {
    const opener = document.activeElement;
    const box = dialog.current;
    box?.showModal();
    return () => {
      box?.close();
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
  }, []);
  if (!image) return null;
  const canBack = at > 0;
  const canGo = at < images.length - 1;
  return (
    <dialog
      ref={dialog}
      className="m-0 h-dvh max-h-none w-screen max-w-none flex-col bg-[oklch(14%_0.01_262/0.96)] text-[oklch(96%_0.004_260)] open:flex"
      aria-label={t("table.image.title")}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => {
        if (event.target === dialog.current) onClose();
      }}
      onKeyDown={(event) => {
        if (event.key === "ArrowLeft" && canBack) onStep(at - 1);
        else if (event.key === "ArrowRight" && canGo) onStep(at + 1);
        else return;
        event.preventDefault();
      }}
    >
      <header className="flex min-h-12 items-center gap-2 px-3">
        <span className="tabular-nums" role="status">
          {t("table.image.place", { at: at + 1, total: images.length })}
        </span>
        <span className="grow" />
        <CopyButton text={image.url} label={t("table.image.copy")} />
        <a
          className="btn btn-ghost btn-square btn-sm text-inherit hover:bg-white/20"
          href={image.url}
          target="_blank"
          rel="noreferrer"
          aria-label={t("table.image.original")}
          title={t("table.image.original")}
        >
          <ExternalLink aria-hidden size={16} />
        </a>
        <button
          type="button"
          className="btn btn-ghost btn-square btn-sm text-inherit hover:bg-white/20"
          aria-label={t("common.close")}
          onClick={onClose}
        >
          <X aria-hidden />
        </button>
      </header>
      <div className="flex min-h-0 flex-1 items-center justify-between gap-2 px-2">
        <button
          type="button"
          className="btn btn-ghost btn-square btn-sm text-inherit hover:bg-white/20"
          aria-label={t("table.image.previous")}
          disabled={!canBack}
          onClick={() => onStep(at - 1)}
        >
          <ChevronLeft aria-hidden />
        </button>
        {broken === image.url ? (
          <p role="alert">{t("table.image.broken")}</p>
        ) : (
          <img
            key={image.url}
            src={image.url}
            alt={image.alt}
            className="max-h-full max-w-[calc(100%-96px)] object-contain"
            onError={() => setBroken(image.url)}
          />
        )}
        <button
          type="button"
          className="btn btn-ghost btn-square btn-sm text-inherit hover:bg-white/20"
          aria-label={t("table.image.next")}
          disabled={!canGo}
          onClick={() => onStep(at + 1)}
        >
          <ChevronRight aria-hidden />
        </button>
      </div>
      {image.alt ? <p className="max-h-[20dvh] overflow-auto px-4 py-3 text-center">{image.alt}</p> : null}
    </dialog>
  );
}
