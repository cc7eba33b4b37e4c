// Models that one may call, for the palette: their calls and prices, and to administrators the channels that serve them.
import { Role } from "../../../src/shared/enums.ts";
import { api, call } from "../api.ts";
import type { Command } from "../commands.ts";
import { t } from "../i18n.ts";
import { MOST_FOUND } from "./finder.ts";
import type { Finder } from "./finder.ts";

/** Administrators look after every model in use, not only those of their own groups. */
function modelNames(role: number): Promise<readonly string[]> {
  return role >= Role.admin
    ? call(api.channel.models_enabled.get())
    : call(api.user.models.get({ query: {} }));
}

export const models: Finder = {
  title: "shell.find.model",
  role: Role.user,
  async find({ text, role, once }) {
    const words = text.toLowerCase().split(/\s+/);
    const names = await once("models", () => modelNames(role));
    const found = names.filter((name) => words.every((word) => name.toLowerCase().includes(word)));
    return found.slice(0, MOST_FOUND).flatMap((name): Command[] => {
      const query = encodeURIComponent(name);
      const log: Command = {
        id: `find model ${name}`,
        kind: "find",
        title: name,
        note: t("shell.find.modelLog"),
        run: () => location.assign(`/log?model_name=${query}`),
      };
      const price: Command = {
        ...log,
        id: `find model price ${name}`,
        note: t("shell.find.modelPrice"),
        run: () => location.assign(`/pricing?model=${query}`),
      };
      if (role < Role.admin) return [log, price];
      const served = `/channel?model=${query}`;
      return [
        log,
        {
          ...log,
          id: `find model channels ${name}`,
          note: t("shell.find.modelChannels"),
          run: () => location.assign(served),
        },
        price,
      ];
    });
  },
};
