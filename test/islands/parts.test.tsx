// Amounts, the invitation card, long lists of choices, and what the palette says of nothing: by label and by keyboard.
import { afterEach, describe, expect, test } from "bun:test";
import { cleanup, screen, within } from "@testing-library/react";
import { ApiFailure } from "../../islands/lib/api.ts";
import { useForm } from "../../islands/lib/form.ts";
import { useCompleteChoices } from "../../islands/lib/complete-choices.ts";
import Playground from "../../islands/screens/playground.tsx";
import TokenScreen from "../../islands/screens/token.tsx";
import { CopyButton } from "../../islands/ui/copy-button.tsx";
import { InvitationCard } from "../../islands/ui/invitation-card.tsx";
import { MoneyField } from "../../islands/ui/money-field.tsx";
import { renderPart, renderScreen, settle } from "./render.tsx";

afterEach(() => {
  cleanup();
  localStorage.clear();
});

interface Amount extends Record<string, unknown> {
  quota: number | undefined;
}

function Amounts({ onValue }: { onValue: (value: unknown) => void }) {
  const form = useForm<Amount>({ initial: { quota: 500_000 }, validate: () => ({}) });
  onValue(form.values.quota);
  return (
    <MoneyField
      form={form}
      name="quota"
      label="Amount"
      presets={[500_000, 5_000_000]}
      presetsLabel="Presets"
    />
  );
}

describe("amount", () => {
  test("is typed in dollars, kept in units, and a preset is one key away", async () => {
    let value: unknown;
    const { user } = renderPart(<Amounts onValue={(next) => (value = next)} />);
    const field = screen.getByLabelText("Amount") as HTMLInputElement;
    expect(field.value).toBe("1");
    await user.clear(field);
    expect(value).toBeUndefined();
    await user.type(field, "12.5");
    expect(value).toBe(6_250_000);
    expect(field.value).toBe("12.5");
    await user.tab();
    await user.tab();
    await user.keyboard("{Enter}");
    expect(value).toBe(5_000_000);
    expect(field.value).toBe("10");
    const presets = within(screen.getByRole("group", { name: "Presets" }));
    expect(presets.getByRole("button", { name: "$10" }).getAttribute("aria-pressed")).toBe("true");
  });

  test("is typed in units where the site shows units", async () => {
    let value: unknown;
    const { user } = renderPart(<Amounts onValue={(next) => (value = next)} />, {
      status: { display_in_currency: false },
    });
    const field = screen.getByLabelText("Amount") as HTMLInputElement;
    await user.clear(field);
    await user.type(field, "250000");
    expect(value).toBe(250_000);
    expect(screen.getByRole("button", { name: "5,000,000" })).toBeTruthy();
  });
});

describe("invitation", () => {
  const INVITATION = { code: "aB3x", count: 4, quota: 1_500_000, history: 2_000_000 };

  test("without an address of the operator's the link is where this page was opened", () => {
    renderPart(<InvitationCard invitation={INVITATION} onMoved={() => {}} />, {
      status: { server_address: "" },
    });
    expect(screen.getByText(`${location.origin}/register?aff=aB3x`)).toBeTruthy();
  });

  test("the link is there to copy, and the reward moves by Enter, never more than there is", async () => {
    let moved = 0;
    const island = renderPart(
      <InvitationCard invitation={INVITATION} onMoved={(quota) => (moved += quota)} />,
      { status: { server_address: "https://gate.example/" } },
    );
    island.answer("POST /api/user/aff_transfer", { success: true, message: "" });
    expect(screen.getByText("https://gate.example/register?aff=aB3x")).toBeTruthy();
    const field = screen.getByRole("textbox");
    await island.user.clear(field);
    await island.user.type(field, "4{Enter}");
    await settle();
    expect(island.requests).toEqual([]);
    expect(field.getAttribute("aria-invalid")).toBe("true");
    await island.user.clear(field);
    await island.user.type(field, "3{Enter}");
    await settle();
    expect(island.requests.map(({ body }) => body)).toEqual([{ quota: 1_500_000 }]);
    expect(moved).toBe(1_500_000);
    // Nothing is left that could be moved.
    expect(screen.queryByRole("textbox")).toBeNull();
  });
});

test("a button to copy has one look, whatever its caller asks for", () => {
  renderPart(
    <>
      <CopyButton text="x" label="Plain" withText className="mt-2" />
      <CopyButton text="x" label="Quiet" withText className="btn-ghost" />
    </>,
  );
  const looksOf = (name: string) =>
    [...screen.getByRole("button", { name }).classList].filter((each) => /^btn-(ghost|default)$/.test(each));
  expect([looksOf("Plain"), looksOf("Quiet")]).toEqual([["btn-default"], ["btn-ghost"]]);
});

describe("a list of which the page brought only the beginning", () => {
  function Names({ isCut, load }: { isCut: boolean; load: () => Promise<string[]> }) {
    const { all, isComplete } = useCompleteChoices(["one"], isCut, load);
    return <p>{`${all.join(" ")}${isComplete ? "" : " …"}`}</p>;
  }

  test("is completed behind the first paint; a whole one asks nothing", async () => {
    let calls = 0;
    const load = async () => (calls++, ["one", "two"]);
    const { unmount } = renderPart(<Names isCut load={load} />);
    expect(screen.getByText("one …")).toBeTruthy();
    await settle();
    expect(screen.getByText("one two")).toBeTruthy();
    unmount();
    renderPart(<Names isCut={false} load={load} />);
    await settle();
    expect(screen.getByText("one")).toBeTruthy();
    expect(calls).toBe(1);
  });

  test("stays as it is when the rest cannot be had, and says so", async () => {
    renderPart(
      <Names isCut load={() => Promise.reject(new ApiFailure("network", 0, "The server is away"))} />,
    );
    await settle();
    expect(screen.getByText("one …")).toBeTruthy();
    expect(screen.getByRole("alert").textContent).toContain("The server is away");
  });

  test("a key's models are searched, chosen by keyboard, and the rest is counted", async () => {
    const names = Array.from({ length: 150 }, (_, index) => `model-${String(index).padStart(3, "0")}`);
    const island = renderScreen(TokenScreen, {
      url: "/token?new=1",
      data: {
        rows: [],
        total: 0,
        pageSize: 10,
        groups: {},
        auto: [],
        models: names.slice(0, 100),
        isCut: true,
      },
    });
    island.answer("GET /api/user/models", { success: true, message: "", data: names });
    island.answer("GET /api/user/self/groups", { success: true, message: "", data: {} });
    await settle();
    const dialog = within(await screen.findByRole("dialog"));
    await island.user.click(dialog.getByText("Limits"));
    await island.user.click(dialog.getByRole("switch", { name: "Limit models" }));
    await settle();
    const group = within(dialog.getByRole("group", { name: "Models to choose from" }));
    expect(group.getAllByRole("button")).toHaveLength(100);
    expect(group.getByRole("status").textContent).toContain("and 50 more");
    // Enter in the search looks for a model; it does not make the key.
    await island.user.type(group.getByRole("searchbox"), "149{Enter}");
    expect(island.requests.filter(({ method }) => method !== "GET")).toEqual([]);
    await island.user.tab();
    await island.user.keyboard(" ");
    expect((dialog.getByRole("textbox", { name: /^Models/ }) as HTMLTextAreaElement).value).toBe("model-149");
    expect(group.getByRole("button", { name: "model-149" }).getAttribute("aria-pressed")).toBe("true");
  });

  test("the playground keeps a stored model that the page did not bring, and offers all of the group", async () => {
    const names = Array.from({ length: 130 }, (_, index) => `model-${index}`);
    const island = renderScreen(Playground, {
      url: "/playground",
      data: {
        groups: [{ name: "default", desc: "", ratio: 1 }],
        models: names.slice(0, 100).map((name) => [name, [0], []]),
        isCut: true,
      },
    });
    island.answer("GET /api/user/models/priced", {
      success: true,
      message: "",
      data: names.map((name) => [name, []]),
    });
    island.answer("GET /api/user/self/groups", {
      success: true,
      message: "",
      data: { default: { ratio: 1, desc: "" }, vip: { ratio: 2, desc: "Paid" } },
    });
    await settle();
    await settle();
    expect(island.requests.find(({ path }) => path === "/api/user/models/priced")?.query).toEqual({
      group: "default",
    });
    const picker = screen.getByRole("combobox", { name: "Model" }) as HTMLInputElement;
    await island.user.click(picker);
    expect(within(screen.getByRole("listbox")).getAllByRole("option")).toHaveLength(100);
    expect(screen.getByText(/and 30 more/)).toBeTruthy();
    await island.user.keyboard("model-129{Enter}");
    expect(picker.value).toBe("model-129");
    expect(screen.getByRole("option", { name: /vip/ })).toBeTruthy();
  });
});

test("the palette says that nothing matches, beside its list and not in it", async () => {
  const { user, answer } = renderPart(null);
  answer("GET /api/token/search", { success: true, data: [] });
  answer("GET /api/user/models", { success: true, data: [] });
  await user.keyboard("{Control>}k{/Control}");
  const field = await screen.findByRole("combobox", { name: "Search or jump" });
  await user.type(field, "no such thing anywhere");
  const said = await screen.findByText("Nothing matches");
  expect(screen.queryByRole("option")).toBeNull();
  expect(said.getAttribute("role")).toBe("status");
  expect(said.closest("[role=listbox]")).toBeNull();
  await user.clear(field);
  await user.type(field, "wallet");
  expect(screen.getAllByRole("option").length).toBeGreaterThan(0);
});
