// What people can do with a drawer and its form: fill, be corrected, save by keyboard, leave without losing work.
import { describe, expect, test } from "bun:test";
import { fireEvent, screen, within } from "@testing-library/react";
import { useState } from "react";
import { ApiFailure, LEAVING, api, call } from "../../islands/lib/api.ts";
import { useForm } from "../../islands/lib/form.ts";
import { Drawer, DrawerForm } from "../../islands/ui/drawer.tsx";
import { NumberField, SecretField, SwitchField, TextField } from "../../islands/ui/form.tsx";
import { renderPart, settle } from "./render.tsx";

interface Props {
  onSave?: (values: object, changed: object) => Promise<void>;
  onClose?: () => void;
  name?: string;
  /** It exists already: a draft is kept for the time of a sign-in alone. */
  isAway?: boolean;
}

function Editor({
  onSave = async () => undefined,
  onClose = () => undefined,
  name = "alpha",
  isAway,
}: Props) {
  const [isOpen, setOpen] = useState(false);
  const form = useForm({
    initial: { name, priority: 3 as number | undefined, key: "", isOn: true },
    secrets: ["key"],
    ...(isAway ? { awayKey: "test" } : { draftKey: "test" }),
    validate: (values) => (values.name === "" ? { name: "Required" } : {}),
  });
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Open
      </button>
      <DrawerForm
        isOpen={isOpen}
        title="Edit alpha"
        form={form}
        onSave={onSave}
        onClose={() => {
          setOpen(false);
          onClose();
        }}
      >
        <TextField form={form} name="name" label="Name" hint="Shown in logs" isRequired />
        <NumberField form={form} name="priority" label="Priority" />
        <SecretField form={form} name="key" label="Key" isSet />
        <SwitchField form={form} name="isOn" label="On" hint="Takes calls" />
      </DrawerForm>
    </>
  );
}

async function open(props: Props = {}) {
  const island = renderPart(<Editor {...props} />);
  await island.user.click(screen.getByRole("button", { name: "Open" }));
  return island;
}

const field = (name: string) => screen.getByLabelText(new RegExp(`^${name}`));

describe("fields", () => {
  test("a hint belongs to its field, and the error takes its place and is announced with it", async () => {
    const { user } = await open();
    const name = field("Name");
    const described = () => document.getElementById(name.getAttribute("aria-describedby") ?? "")?.textContent;
    expect(described()).toBe("Shown in logs");
    await user.clear(name);
    await user.tab();
    expect(name.getAttribute("aria-invalid")).toBe("true");
    expect(described()).toBe("Required");
    await user.type(name, "b");
    expect(name.getAttribute("aria-invalid")).toBeNull();
  });

  test("a changed field can be reverted with one press", async () => {
    const { user } = await open();
    await user.type(field("Name"), "!");
    await user.click(screen.getByRole("button", { name: "Revert Name" }));
    expect((field("Name") as HTMLInputElement).value).toBe("alpha");
    expect(screen.queryByRole("button", { name: "Revert Name" })).toBeNull();
  });

  test("a secret is hidden until asked for and says that an empty field keeps it", async () => {
    const { user } = await open();
    const key = field("Key") as HTMLInputElement;
    expect(key.type).toBe("password");
    expect(screen.getByText("Set; leave empty to keep it")).toBeTruthy();
    await user.click(screen.getByRole("button", { name: "Show" }));
    expect(key.type).toBe("text");
  });

  test("numbers may be emptied and typed anew", async () => {
    const saved: unknown[] = [];
    const { user } = await open({ onSave: async (_, changed) => void saved.push(changed) });
    const priority = field("Priority");
    await user.clear(priority);
    await user.type(priority, "12");
    await user.click(screen.getByRole("button", { name: "Save" }));
    expect(saved).toEqual([{ priority: 12 }]);
  });
});

describe("saving", () => {
  test("Ctrl Enter saves what changed and closes the drawer", async () => {
    const saved: unknown[] = [];
    let closed = false;
    const { user } = await open({
      onSave: async (_, changed) => void saved.push(changed),
      onClose: () => (closed = true),
    });
    await user.type(field("Name"), "2");
    await user.click(screen.getByRole("switch", { name: "On" }));
    await user.keyboard("{Control>}{Enter}{/Control}");
    await settle();
    expect(saved).toEqual([{ name: "alpha2", isOn: false }]);
    expect(closed).toBe(true);
  });

  test("a wrong form is not sent and the first wrong field gets the focus", async () => {
    const saved: unknown[] = [];
    const { user } = await open({ onSave: async () => void saved.push(1) });
    await user.clear(field("Name"));
    await user.click(screen.getByRole("button", { name: "Save" }));
    await settle();
    expect(saved).toEqual([]);
    expect(document.activeElement).toBe(field("Name"));
  });

  test("saving without a change says so and sends nothing", async () => {
    const saved: unknown[] = [];
    const { user } = await open({ onSave: async () => void saved.push(1) });
    await user.click(screen.getByRole("button", { name: "Save" }));
    expect(saved).toEqual([]);
    expect(screen.getByText("There is nothing to save")).toBeTruthy();
  });

  test("a field that the server refuses carries the server's text", async () => {
    const { user } = await open({
      onSave: async () => {
        throw new ApiFailure("taken", 200, "This name is taken", "name");
      },
    });
    await user.type(field("Name"), "x");
    await user.click(screen.getByRole("button", { name: "Save" }));
    await settle();
    expect(screen.getByText("This name is taken").id).toBe(
      field("Name").getAttribute("aria-describedby") ?? "-",
    );
    expect(screen.getByRole("dialog", { name: "Edit alpha" })).toBeTruthy();
  });

  test("another failure keeps the drawer open and stays as a toast with its code", async () => {
    const { user } = await open({
      onSave: async () => {
        throw new ApiFailure("quota_short", 200, "Not enough quota");
      },
    });
    await user.type(field("Name"), "x");
    await user.click(screen.getByRole("button", { name: "Save" }));
    await settle();
    const alert = screen.getByRole("alert");
    expect(within(alert).getByText("Not enough quota")).toBeTruthy();
    expect(within(alert).getByText("quota_short")).toBeTruthy();
    expect((field("Name") as HTMLInputElement).value).toBe("alphax");
  });
});

describe("leaving", () => {
  const cancelDialog = () =>
    fireEvent(screen.getByRole("dialog", { name: "Edit alpha" }), new Event("cancel", { cancelable: true }));

  test("without changes Escape closes and the focus returns to the opener", async () => {
    await open();
    cancelDialog();
    await settle();
    expect(screen.queryByRole("dialog")).toBeNull();
    expect(document.activeElement).toBe(screen.getByRole("button", { name: "Open" }));
  });

  test("where an address opened it, or its opener has gone, the focus goes to the page's content", async () => {
    function Addressed() {
      const [isOpen, setOpen] = useState(true);
      return (
        <main id="content" tabIndex={-1}>
          <Drawer isOpen={isOpen} title="Opened by its address" onClose={() => setOpen(false)}>
            <input aria-label="First" />
          </Drawer>
        </main>
      );
    }
    renderPart(<Addressed />);
    expect(document.activeElement === screen.getByLabelText("First")).toBe(true);
    fireEvent(screen.getByRole("dialog"), new Event("cancel", { cancelable: true }));
    await settle();
    expect(document.activeElement?.id).toBe("content");
  });

  test("with changes it asks once; Cancel keeps the form, the answer discards it", async () => {
    const { user } = await open();
    await user.type(field("Name"), "9");
    cancelDialog();
    await settle();
    await user.click(
      within(screen.getByRole("dialog", { name: "Discard unsaved changes?" })).getByRole("button", {
        name: "Cancel",
      }),
    );
    expect((field("Name") as HTMLInputElement).value).toBe("alpha9");
    cancelDialog();
    await settle();
    await user.click(screen.getByRole("button", { name: "Discard changes" }));
    await settle();
    expect(screen.queryByRole("dialog")).toBeNull();
  });

  test("an ended session keeps what was typed as a draft, secrets excepted, and goes to the login and back", async () => {
    const island = await open();
    await island.user.type(field("Name"), "9");
    await island.user.type(field("Key"), "sk-secret");
    island.answer("GET /api/status", () =>
      Response.json({ success: false, code: "auth_not_signed_in", message: "x" }, { status: 401 }),
    );
    let left = 0;
    window.addEventListener(LEAVING, () => left++, { once: true });
    const refused = await call(api.status.get()).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(ApiFailure);
    expect(left).toBe(1);
    expect(island.visited).toEqual(["/login?expired=true&next=%2F"]);
    expect(JSON.parse(sessionStorage.getItem("draft test") ?? "{}")).toEqual({ name: "alpha9" });
    island.unmount();
    // Another visit of the same form finds the draft.
    const again = renderPart(<Editor />);
    await again.user.click(screen.getByRole("button", { name: "Open" }));
    expect((field("Name") as HTMLInputElement).value).toBe("alpha9");
    expect((field("Key") as HTMLInputElement).value).toBe("");
  });

  test("of what exists already it is kept until the form is there again, once, and for the same account", async () => {
    const island = await open({ isAway: true });
    await island.user.type(field("Name"), "9");
    await island.user.type(field("Key"), "sk-secret");
    window.dispatchEvent(new Event("pagehide"));
    expect(sessionStorage.length).toBe(0);
    window.dispatchEvent(new Event(LEAVING));
    expect(sessionStorage.getItem("draft 7 test")).toBe('{"name":"alpha9"}');
    const reopened = async (id: number) => {
      const again = renderPart(<Editor isAway />, { user: { id } });
      await again.user.click(screen.getByRole("button", { name: "Open" }));
      const { value } = field("Name") as HTMLInputElement;
      again.unmount();
      return value;
    };
    island.unmount();
    expect(await reopened(8)).toBe("alpha");
    expect(await reopened(7)).toBe("alpha9");
    expect(await reopened(7)).toBe("alpha");
  });
});
