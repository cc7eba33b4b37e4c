// The base that old clients and /chat2link put "/#/?settings=" behind: of the first chat link that is a web page.
import { expect, test } from "bun:test";
import { firstWebChat } from "../../../src/core/site/status.ts";
import { startTestApp } from "../../support/app.ts";

test.each([
  [[], ""],
  [[{ Web: `https://chat.example/#/?settings={"key":"{key}","url":"{address}"}` }], "https://chat.example"],
  [[{ Web: "https://chat.example/app/#/chat?key={key}" }], "https://chat.example/app"],
  [[{ Web: "https://chat.example/?key={key}&url={address}" }], "https://chat.example"],
  [
    [{ Program: "cherrystudio://providers?key={key}" }, { Web: "http://lan.example:3000/#/" }],
    "http://lan.example:3000",
  ],
  [[{ Bad: "javascript:alert(1)//https://x.example/#/" }], ""],
  [
    [{ Bad: "{address}/#/" }, { Bad: "https://{address}/#/" }, { Good: "https://b.example" }],
    "https://b.example",
  ],
  [[null, "text", {}, { Number: 7 }], ""],
])("%j gives %p", (chats, base) => expect(firstWebChat(chats)).toBe(base));

test("the status carries it, so that /chat2link knows where to go as soon as a link is saved", async () => {
  const app = await startTestApp();
  const link = async () =>
    (await app.call<{ data: { chat_link: string } }>("GET", "/api/status")).body.data.chat_link;
  expect(await link()).toBe("");
  await app.deps.options.set(
    "Chats",
    '[{"Next":"https://chat.example/#/?settings={\\"key\\":\\"{key}\\"}"}]',
  );
  expect(await link()).toBe("https://chat.example");
  await app.close();
});
