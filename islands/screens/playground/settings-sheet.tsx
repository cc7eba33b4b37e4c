// The settings as a sheet, where the window is too narrow for them to stand beside the conversation.
import type { ReactNode } from "react";
import { useT } from "../../lib/i18n.ts";
import { Drawer } from "../../ui/drawer.tsx";

export default function SettingsSheet({ children, onClose }: { children: ReactNode; onClose: () => void }) {
  const t = useT();
  return (
    <Drawer isOpen title={t("playground.settings")} width="peek" onClose={onClose}>
      {children}
    </Drawer>
  );
}
