// The tab for payments as root works in it: methods as rows, amounts as numbers, which rails are open and what the others still need.
import { beforeEach, describe, expect, test } from "bun:test";
import { render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import type { OptionEditorProps } from "../../islands/screens/setting/editor-props.ts";
import { AmountList, PayMethodList } from "../../islands/screens/setting/editors/pay-lists.tsx";
import Rails from "../../islands/screens/setting/editors/rails.tsx";
import type { OptionRow } from "../../src/shared/setting-rows.ts";
import { renderPart } from "./render.tsx";

const row = (key: string, part: Partial<OptionRow> = {}): OptionRow =>
  ({
    key,
    kind: "text",
    group: "payment",
    tab: "payment",
    value: "",
    default: "",
    secret: false,
    ...part,
  }) as OptionRow;

let written = "";
beforeEach(() => {
  written = "";
});

type Editor = (props: OptionEditorProps) => React.ReactNode;

function Held({ editor: Shown, first, option }: { editor: Editor; first: string; option: string }) {
  const [value, setValue] = useState(first);
  const props = {
    option: row(option),
    value,
    onChange: (next: string) => {
      written = next;
      setValue(next);
    },
    labelledBy: "name",
    describedBy: "help",
    failure: undefined,
  } as unknown as OptionEditorProps;
  return <Shown {...props} />;
}

describe("what the wallet offers", () => {
  test("methods are rows: added, named, given a minimum, removed", async () => {
    renderPart(null);
    const user = userEvent.setup();
    render(<Held editor={PayMethodList} option="PayMethods" first='[{"name":"支付宝","type":"alipay"}]' />);
    await user.click(screen.getByRole("button", { name: "Add a method" }));
    await user.type(screen.getByRole("textbox", { name: "Name of method 2" }), "Bank");
    await user.type(screen.getByRole("textbox", { name: "Word of method 2" }), "bank");
    await user.type(screen.getByRole("textbox", { name: /Minimum of method 2/ }), "5x");
    expect(JSON.parse(written)).toEqual([
      { name: "支付宝", type: "alipay" },
      { name: "Bank", type: "bank", min_topup: 5 },
    ]);
    await user.click(screen.getByRole("button", { name: "Remove 支付宝" }));
    expect(JSON.parse(written)).toEqual([{ name: "Bank", type: "bank", min_topup: 5 }]);
  });

  test("amounts are typed with commas, each once", async () => {
    renderPart(null);
    const user = userEvent.setup();
    render(<Held editor={AmountList} option="payment_setting.amount_options" first="[10,20]" />);
    const field = screen.getByRole("textbox");
    expect((field as HTMLInputElement).value).toBe("10, 20");
    await user.type(field, ", 50，50");
    expect(JSON.parse(written)).toEqual([10, 20, 50]);
  });
});

test("the rails are those of the server: which are open, what the others still need, where each is called", async () => {
  const texts = { title: { en: "Loft", zh: "鸽舍" }, help: { en: "Where they land.", zh: "鸽子落脚处。" } };
  const rows = new Map<string, OptionRow>(
    [row("PigeonLoft", { texts }), row("CustomCallbackAddress")].map((each) => [each.key, each]),
  );
  const rail = { open: false, missing: [] as string[] };
  renderPart(<Rails rows={rows} />, {
    status: { server_address: "https://gate.example/" },
    answers: {
      "GET /api/user/topup/info": {
        success: true,
        data: {
          open: true,
          methods: [],
          rails: [
            { ...rail, name: "epay", title: "Epay", callback: "/api/user/epay/notify", open: true },
            {
              ...rail,
              name: "pigeon",
              title: "By pigeon",
              callback: "/api/payment/pigeon",
              missing: ["PigeonLoft", "ServerAddress"],
            },
            { ...rail, name: "owl", title: "By owl", callback: "/api/payment/owl" },
          ],
        },
      },
    },
  });
  await screen.findByText("Open");
  const [epay, pigeon, owl] = screen.getAllByRole("listitem").map((each) => within(each));
  expect(epay?.getByText("https://gate.example/api/user/epay/notify")).toBeTruthy();
  expect(pigeon?.getByText("By pigeon")).toBeTruthy();
  expect(pigeon?.getByText("Closed")).toBeTruthy();
  expect(pigeon?.getByText(/^Missing: /).textContent).toBe("Missing: Loft, Server address");
  expect(pigeon?.getByText("https://gate.example/api/payment/pigeon")).toBeTruthy();
  // It lacks nothing: the site sells nothing.
  expect(owl?.getByText("A site for own use, or a demo, sells nothing")).toBeTruthy();
});
