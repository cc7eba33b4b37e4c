// Names and addresses as keys: what is one account for people is one for the site, and what is two mailboxes stays two.
import { describe, expect, test } from "bun:test";
import { foldMail, isPlainName, isReservedName, nameKey } from "../../../src/core/users/folding.ts";
import { senderOf } from "../../../src/net/mail.ts";

describe("an address", () => {
  test.each([
    [" Ada@Mail.Example ", "Ada@mail.example", "ada@mail.example"],
    ["ada+shop@mail.example", "ada+shop@mail.example", "ada+shop@mail.example"],
    ["a.d.a@googlemail.com", "a.d.a@googlemail.com", "a.d.a@googlemail.com"],
    ["ada@bücher.example", "ada@xn--bcher-kva.example", "ada@xn--bcher-kva.example"],
    ["ada@XN--BCHER-KVA.example", "ada@xn--bcher-kva.example", "ada@xn--bcher-kva.example"],
    ["o'neill_x-y=z&~@a.b-c.example", "o'neill_x-y=z&~@a.b-c.example", "o'neill_x-y=z&~@a.b-c.example"],
  ])("%p is stored and compared", (typed, address, key) => {
    expect(foldMail(typed)).toEqual({ address, key });
  });

  test.each([
    "",
    "ada",
    "ada@",
    "@mail.example",
    "ada@mail",
    "ada@@mail.example",
    "ada@mail.example.",
    "ada@mail..example",
    ".ada@mail.example",
    "ada.@mail.example",
    "a..da@mail.example",
    "a@x.example, b@y.example",
    "a@x.example;b@y.example",
    "ada@x.example\r\nBcc: b@y.example",
    '"ada smith"@x.example',
    "Ada <ada@x.example>",
    "ada%x.example@relay.example",
    "ada@x.example/y",
    "ada@x.example?y",
    "ada@x.example#y",
    "ada@x.example:25",
    "ada@[127.0.0.1]",
    "ada@127.0.0.1",
    "ada@0x7f.1",
    "ada@-x.example",
    "ada@x .example",
    "аda@mail.example",
    "ａda@mail.example",
    "adı@mail.example",
    `${"a".repeat(65)}@mail.example`,
    `a@${"b".repeat(63)}.${"c".repeat(63)}.${"d".repeat(63)}.${"e".repeat(63)}.example`,
  ])("%p is none", (typed) => {
    expect(foldMail(typed)).toBeUndefined();
  });

  test("a sender may have a name of its own", () => {
    expect(senderOf("Weir <site@mail.example>", "Site")).toEqual({
      name: "Weir",
      address: "site@mail.example",
    });
    expect(senderOf('"A, B" <site@mail.example>', "Site")).toEqual({
      name: "A, B",
      address: "site@mail.example",
    });
    expect(senderOf(" site@mail.example ", "Site")).toEqual({ name: "Site", address: "site@mail.example" });
  });
});

describe("a name", () => {
  test("in other letters of the same look is the same", () => {
    expect(nameKey("Ａｄａ")).toBe("ada");
    expect(nameKey(" ADA ")).toBe("ada");
    expect(nameKey("ﬁn")).toBe("fin");
    // Dotless i is another letter, to everybody.
    expect(nameKey("adı")).not.toBe(nameKey("adi"));
  });

  test.each(["ada", "Ада", "阿达", "ada 2", "ζωή", "a-b_c"])("%p is one", (name) => {
    expect(isPlainName(name)).toBe(true);
  });

  test.each([
    "",
    "   ",
    "ada\u200b",
    "ada\u202egnp",
    "a\u0000da",
    "ada\n",
    "ada\ue000",
    "ada\ud800",
    "ada\u2028b",
    "аdmin",
    "αda",
    "աda",
    "ada@mail.example",
    "ada＠mail",
  ])("%p is none", (name) => {
    expect(isPlainName(name)).toBe(false);
  });

  test("of the site is kept from strangers, however it is written", () => {
    expect(["root", "Admin", "ＳＹＳＴＥＭ", " ROOT "].map(isReservedName)).toEqual([true, true, true, true]);
    expect(isReservedName("rooter")).toBe(false);
  });
});
