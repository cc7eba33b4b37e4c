// The sheet of all shortcuts, made from the registry; opened with "?". Loaded on first use.
// Refuses to list what is not registered on this page.
import { useT } from "../lib/i18n.ts";
import { keysText, shortcuts } from "../lib/keys.ts";
import { Drawer } from "./drawer.tsx";

export default function ShortcutSheet({ onClose }: { onClose: () => void }) {
  const t = useT();
  return (
    <Drawer isOpen title={t("shell.shortcuts")} width="peek" onClose={onClose}>
      <dl className="facts">
        {shortcuts().map(({ keys, label }) => (
          <div key={keys}>
            <dt>{t(label)}</dt>
            <dd>
              <kbd className="kbd kbd-sm">{keysText(keys)}</kbd>
            </dd>
          </div>
        ))}
      </dl>
    </Drawer>
  );
}
