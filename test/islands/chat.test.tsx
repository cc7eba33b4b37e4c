// The embedded chat and the old entry that leads out: key and address filled in, another key chosen, what is missing told.
import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { act, fireEvent, screen } from "@testing-library/react";
import { interceptLeaving } from "../../islands/lib/leave.ts";
import ChatScreen from "../../islands/screens/chat.tsx";
import ChatToLink from "../../islands/screens/chat2link.tsx";
import { renderScreen } from "./render.tsx";
import type { IslandOptions } from "./render.tsx";

let left: string[] = [];

beforeEach(() => {
  left = [];
  interceptLeaving(
    (url) => left.push(url),
    (url) => left.push(url),
  );
});
afterEach(() => jest.useRealTimers());

const KEYS = [
  { id: 5, name: "laptop", key: "aaaaaaaaaaaa1111" },
  { id: 4, name: "phone", key: "bbbbbbbbbbbb2222" },
];
const CHATS: Record<string, string>[] = [
  { Next: "https://chat.example/#/?key={key}&url={address}" },
  { App: "ama://set?key={key}" },
  { Evil: "javascript:alert(1)" },
];

function open(id: string, options: IslandOptions & { keys?: typeof KEYS } = {}) {
  const { keys = KEYS, ...rest } = options;
  return renderScreen(ChatScreen, {
    data: { keys },
    params: { id },
    url: `/chat/${id}`,
    status: { chats: CHATS, server_address: "https://gate.example/v1" },
    ...rest,
  });
}

const frame = () => document.querySelector("iframe");

describe("embedded chat", () => {
  test("the client opens in a frame with key and address, and may use camera and microphone", () => {
    open("0");
    expect(frame()?.getAttribute("src")).toBe(
      "https://chat.example/#/?key=sk-aaaaaaaaaaaa1111&url=https%3A%2F%2Fgate.example",
    );
    expect(frame()?.getAttribute("allow")).toContain("camera; microphone");
    expect(frame()?.title).toBe("Next");
  });

  test("it says which key is used and lets another one be chosen", async () => {
    const { user } = open("0");
    const choice = screen.getByLabelText<HTMLSelectElement>("Key in use");
    expect(choice.selectedOptions[0]?.textContent).toBe("laptop · sk-••••1111");
    await user.selectOptions(choice, "4");
    expect(location.search).toBe("?token=4");
    expect(frame()?.getAttribute("src")).toContain("sk-bbbbbbbbbbbb2222");
    expect(screen.getByRole("link", { name: "Open in a new tab" }).getAttribute("href")).toContain(
      "sk-bbbbbbbbbbbb2222",
    );
  });

  test("programs of their own are opened by a button, broken links are called broken", () => {
    const first = open("1");
    expect(frame()).toBeNull();
    expect(screen.getByRole("link", { name: "Open App" }).getAttribute("href")).toBe(
      "ama://set?key=sk-aaaaaaaaaaaa1111",
    );
    first.unmount();
    const second = open("2", { language: "zh" });
    expect(screen.getByRole("alert").textContent).toBe("聊天链接配置错误，请联系管理员");
    second.unmount();
    const third = open("9", { language: "zh" });
    expect(screen.getByRole("alert").textContent).toBe("聊天链接配置错误，请联系管理员");
    third.unmount();
    open("0", { language: "zh", status: { chats: [] } });
    expect(screen.getByRole("alert").textContent).toBe("请联系管理员配置聊天链接");
    expect(frame()).toBeNull();
  });

  test("without an enabled key it says so and goes to the keys after 1.5 s", () => {
    jest.useFakeTimers();
    open("0", { keys: [], language: "zh" });
    expect(screen.getByRole("alert").textContent).toContain(
      "当前没有可用的启用令牌，请确认是否有令牌处于启用状态！",
    );
    expect(screen.getByText("1.5 秒后前往令牌页面")).toBeTruthy();
    for (let step = 0; step < 2; step++) act(() => void jest.advanceTimersByTime(500));
    expect(left).toEqual([]);
    act(() => void jest.advanceTimersByTime(500));
    expect(left).toEqual(["/token"]);
  });

  test("the way to the keys can be cancelled", () => {
    jest.useFakeTimers();
    open("0", { keys: [] });
    act(() => void jest.advanceTimersByTime(500));
    fireEvent.click(screen.getByRole("button", { name: "Cancel" }));
    act(() => void jest.advanceTimersByTime(5000));
    expect(left).toEqual([]);
    expect(screen.getByRole("link", { name: "Go to the keys" })).toBeTruthy();
  });
});

describe("chat to link", () => {
  const go = (options: IslandOptions & { keys?: typeof KEYS }) =>
    renderScreen(ChatToLink, {
      data: { keys: options.keys ?? KEYS },
      url: "/chat2link",
      ...options,
    });

  test("it leaves for the operator's chat with the first key and the address", () => {
    go({ status: { chat_link: "https://chat.example", server_address: "https://gate.example" } });
    expect(left).toHaveLength(1);
    const settings = new URL(left[0] ?? "").hash.replace("#/?settings=", "");
    expect(JSON.parse(decodeURIComponent(settings))).toEqual({
      key: "sk-aaaaaaaaaaaa1111",
      url: "https://gate.example",
    });
    expect(screen.getByText("Loading")).toBeTruthy();
  });

  test("without a link or a key it stays and says what is missing", () => {
    const first = go({ status: { chat_link: "" } });
    expect(screen.getByRole("alert").textContent).toContain("configure chat links");
    first.unmount();
    const second = go({ status: { chat_link: "javascript:alert(1)//" } });
    expect(screen.getByRole("alert").textContent).toContain("configure chat links");
    second.unmount();
    go({ status: { chat_link: "https://chat.example" }, keys: [] });
    expect(screen.getByRole("alert").textContent).toContain("None of your keys is enabled");
    expect(left).toEqual([]);
  });
});
