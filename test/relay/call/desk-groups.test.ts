// What the sheets of groups collect at the price desk is what users get once it is applied, on both databases: the groups
// that they may choose, with their ratios, and what a call costs them.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createDesk } from "../../../islands/ui/price-sheet/desk.ts";
import {
  autoEdit,
  overrideEdits,
  removalEdits,
  specialEdit,
  usesOf,
} from "../../../islands/screens/price-desk/group-book.ts";
import type { DeskPrices } from "../../../src/shared/price-desk.ts";
import type { TestUser } from "../../support/app.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { HI, MODEL, startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

interface Wire<T> {
  success: boolean;
  code?: string;
  data: T;
}
type Choices = Record<string, { ratio: number | string; desc: string }>;

describe.each(DATABASE_KINDS)("groups set at the desk on %s", (database) => {
  let g: Gateway;
  let root: TestUser;
  let vip: TestUser;
  const desk = createDesk();

  const send = async <T>(method: string, path: string, body?: unknown, as = root): Promise<Wire<T>> =>
    (await g.app.call<Wire<T>>(method, path, body, as)).body;
  const reload = async () => desk.open((await send<DeskPrices>("GET", "/api/price/desk")).data);
  /** Plans what the desk has collected, and applies it. */
  const apply = async () => {
    const changes = desk.changes.value;
    const sent = { changes, parent: desk.prices.value?.revision, days: 0 };
    const plan = await send<{ parent: number; plan_hash: string }>("POST", "/api/price/plan", sent);
    const { parent, plan_hash } = plan.data;
    const applied = await send("POST", "/api/price/apply", { parent, plan_hash, changes });
    if (applied.success) await reload();
    return applied;
  };

  beforeAll(async () => {
    g = await startGateway({ database, channel: { group: "default,premium" } });
    root = await g.app.createUser({ role: 100, username: "chief" });
    vip = await g.app.createUser({ quota: 50_000_000, group: "vip" });
    // Channels of tests are rows without their index.
    await send("POST", "/api/channel/fix");
    await g.setOption("GroupRatio", '{"default":1,"vip":1,"premium":2,"spare":1}');
    await g.setOption("UserUsableGroups", '{"default":"Everybody","spare":"Nobody"}');
    await reload();
  });
  afterAll(() => g.close());

  test("an override, a special group and the automatic choice reach key editor and charge", async () => {
    desk.write(overrideEdits(desk, [{ userGroup: "vip", group: "premium", ratio: 0.5 }]), "override");
    const entries = [
      { key: "+:premium", group: "premium", isRemoval: false, text: "For you" },
      { key: "-:spare", group: "spare", isRemoval: true, text: "" },
    ];
    desk.write([specialEdit(desk, "vip", entries)], "special");
    desk.write([autoEdit(desk, ["premium", "default"])], "auto");
    expect(await apply()).toMatchObject({ success: true });
    // What was applied is stored: nothing is left to plan.
    expect(desk.changes.value).toEqual([]);

    const { data: theirs } = await send<Choices>("GET", "/api/user/self/groups", undefined, vip);
    expect(theirs).toMatchObject({
      default: { ratio: 1, desc: "Everybody" },
      premium: { ratio: 0.5, desc: "For you" },
    });
    expect(theirs).not.toHaveProperty("spare");
    const { data: others } = await send<Choices>("GET", "/api/user/self/groups", undefined, g.user);
    expect(others).not.toHaveProperty("premium");

    const charge = async (group: string) => {
      const { key } = await g.app.createToken(vip.id, { group });
      const headers = { authorization: `Bearer ${key}` };
      return g.charged(async () => {
        const response = await g.post("/v1/chat/completions", { model: MODEL, messages: HI }, headers);
        expect(response.status).toBe(200);
      });
    };
    expect((await charge("premium")).other).toMatchObject({ group_ratio: 0.5, user_group_ratio: 0.5 });
    expect(await charge("auto")).toMatchObject({ group: "premium", other: { group_ratio: 0.5 } });
  });

  test("the desk tells who uses a group as the server counts them, keys with a list of their own too", async () => {
    await g.app.createToken(vip.id, { group: "auto", autoGroups: "premium,default" });
    await g.setOption("DefaultUseAutoGroup", "true");
    await reload();
    const uses = usesOf(desk, "premium");
    expect(uses).toEqual({
      users: 0,
      keys: 2,
      channels: 1,
      enabledChannels: 1,
      places: ["overrides", "special", "auto"],
    });
    expect(desk.prices.value?.isAutoDefault).toBe(true);
    // The server refuses for the same reason.
    desk.write(removalEdits("premium"), "remove");
    expect(await apply()).toMatchObject({ success: false, code: "price_group_in_use" });
    desk.undo();
    // Nobody uses this one any more: it goes, with its place among the groups to choose.
    desk.write([specialEdit(desk, "vip", [])], "special");
    expect(usesOf(desk, "spare")).toEqual({ users: 0, keys: 0, channels: 0, enabledChannels: 0, places: [] });
    desk.write(removalEdits("spare"), "remove");
    expect(await apply()).toMatchObject({ success: true });
    expect(desk.namesOf("GroupRatio")).toEqual(["default", "vip", "premium"]);
    expect(desk.namesOf("UserUsableGroups")).toEqual(["default"]);
  });
});
