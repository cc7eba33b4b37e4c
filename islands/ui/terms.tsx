// The box by which the terms and the privacy notice are accepted, with links to both.
import { useId } from "react";
import { useT } from "../lib/i18n.ts";
import type { LegalPlaces } from "../lib/sign-in.ts";

export interface TermsProps {
  places: Partial<LegalPlaces> | null | undefined;
  isAccepted: boolean;
  onChange: (isAccepted: boolean) => void;
  error?: string | undefined;
}

export function Terms({ places, isAccepted, onChange, error }: TermsProps) {
  const t = useT();
  const id = useId();
  const links = [
    [places?.terms ?? "", t("signin.terms")] as const,
    [places?.privacy ?? "", t("signin.privacy")] as const,
  ].filter(([href]) => href !== "");
  return (
    <div className="mb-6" data-field="accept_terms">
      <label className="flex items-start gap-2 text-sm">
        <input
          type="checkbox"
          name="accept_terms"
          className="checkbox checkbox-sm mt-0.5"
          checked={isAccepted}
          aria-invalid={error === undefined ? undefined : true}
          aria-describedby={error === undefined ? undefined : id}
          onChange={(event) => onChange(event.target.checked)}
        />
        <span>
          {t("signin.accept")}{" "}
          {links.map(([href, title], index) => (
            <span key={title}>
              {index > 0 ? t("signin.and") : null}
              <a className="link" href={href} target="_blank" rel="noreferrer">
                {title}
              </a>
            </span>
          ))}
        </span>
      </label>
      {error === undefined ? null : (
        <p id={id} className="mt-1 text-xs text-error">
          {error}
        </p>
      )}
    </div>
  );
}
