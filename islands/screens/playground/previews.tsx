// The pictures of a question before it is sent, and why other files did not become any.
import { X } from "lucide-react";
import { useT } from "../../lib/i18n.ts";
import type { ComposerProps } from "./composer.tsx";

export default function Previews({ images, onRemoveImage, refused, mostBodyMb, input }: ComposerProps) {
  const t = useT();
  return (
    <>
      <div role="alert" className="px-1 text-[13px] text-error">
        {refused.map(({ name, reason }, index) => (
          <p key={index} className="mb-1 break-words">
            {t(`playground.refused.${reason}`, { name, limit: mostBodyMb ?? "" })}
          </p>
        ))}
      </div>
      {images.length > 0 ? (
        <ul className="mb-1 flex flex-wrap gap-2 p-1" aria-label={t("playground.pictures")}>
          {images.map((url, index) => (
            <li key={url} className="flex items-center gap-1">
              <img
                className="size-16 rounded-field border border-base-300 object-cover"
                src={url}
                alt={t("playground.pictureNo", { number: index + 1 })}
              />
              <button
                type="button"
                className="btn btn-ghost btn-square btn-xs"
                aria-label={t("playground.removePicture", { number: index + 1 })}
                onClick={() => {
                  onRemoveImage(index);
                  input.current?.focus();
                }}
              >
                <X aria-hidden size={14} />
              </button>
            </li>
          ))}
        </ul>
      ) : null}
    </>
  );
}
