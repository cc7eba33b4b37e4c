// Name and logo of the site, seen as the head of a page in both themes while they are typed; no logo: the product's mark.
import { useState } from "react";
import { status } from "../../../lib/boot.ts";
import { useT } from "../../../lib/i18n.ts";
import type { OptionEditorProps } from "../editor-props.ts";
import { BothThemes } from "./both-themes.tsx";

function TextInput({ value, onChange, failure, labelledBy, describedBy, disabled }: OptionEditorProps) {
  return (
    <input
      className="input"
      aria-labelledby={labelledBy}
      aria-describedby={describedBy}
      aria-invalid={failure === undefined ? undefined : true}
      autoComplete="off"
      spellCheck={false}
      disabled={disabled}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}

/** As the console's sidebar shows it. */
function Head({ name, logo }: { name: string; logo: string }) {
  const t = useT();
  const [broken, setBroken] = useState("");
  const isBroken = logo !== "" && broken === logo;
  return (
    <BothThemes>
      <div className="flex min-w-0 items-center gap-2.5 text-[15px] font-semibold">
        {isBroken ? null : (
          <img
            src={logo || "/logo.svg"}
            alt=""
            className="size-6 flex-none"
            onError={() => setBroken(logo)}
          />
        )}
        <span className="min-w-0 truncate">{name}</span>
      </div>
      {isBroken ? <p className="mt-2 text-xs text-error">{t("editor.brand.broken")}</p> : null}
    </BothThemes>
  );
}

export function NameEditor(props: OptionEditorProps) {
  return (
    <div>
      <TextInput {...props} />
      <Head name={props.value.trim() || "Weir"} logo={status.peek().logo ?? ""} />
    </div>
  );
}

export function LogoEditor(props: OptionEditorProps) {
  return (
    <div>
      <TextInput {...props} />
      <Head name={status.peek().system_name || "Weir"} logo={props.value.trim()} />
    </div>
  );
}
