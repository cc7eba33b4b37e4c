// Links of the usual chat programs, to begin with: {key} and {address} are filled in when somebody opens one.

export interface ChatTemplate {
  name: string;
  link: string;
}

/** JSON of settings as these programs take them in their address. */
const settings = (value: object): string => JSON.stringify(value);

export const CHAT_TEMPLATES: readonly ChatTemplate[] = [
  {
    name: "NextChat",
    link: `https://app.nextchat.dev/#/?settings=${settings({ key: "{key}", url: "{address}" })}`,
  },
  {
    name: "LobeChat",
    link: `https://chat-preview.lobehub.com/?settings=${settings({
      keyVaults: { openai: { apiKey: "{key}", baseURL: "{address}/v1" } },
    })}`,
  },
  {
    name: "AI as Workspace",
    link: `https://aiaw.app/set-provider?provider=${settings({
      type: "openai",
      settings: { apiKey: "{key}", baseURL: "{address}/v1", compatibility: "strict" },
    })}`,
  },
  { name: "AMA 问天", link: "ama://set-api-key?server={address}&key={key}" },
  { name: "OpenCat", link: "opencat://team/join?domain={address}&token={key}" },
];
