// Signatures and binary framing against what the providers published: AWS's test suites, Tencent's example, RFC 7515's
// verification by the public key; frames cut at every byte.
import { createVerify, generateKeyPairSync } from "node:crypto";
import { describe, expect, test } from "bun:test";
import { signAws } from "../../src/providers/aws-signature.ts";
import { createAwsEventReader } from "../../src/providers/aws-event-stream.ts";
import { bedrockModelId } from "../../src/providers/adapters/bedrock-models.ts";
import { signAssertion } from "../../src/providers/adapters/google-token.ts";
import { regionOf, vertexModel } from "../../src/providers/adapters/vertex.ts";
import { createTokenCache } from "../../src/providers/adapter-kit.ts";
import { signTc3 } from "../../src/providers/tencent-signature.ts";
import { Failure } from "../../src/shared/failures.ts";
import { awsMessage } from "./adapters/fakes/bedrock.ts";

describe("AWS Signature Version 4, by AWS's own test suite", () => {
  const credentials = {
    accessKey: "AKIDEXAMPLE",
    secretKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    region: "us-east-1",
    service: "service",
  };
  const atMs = Date.UTC(2015, 7, 30, 12, 36, 0);
  const signature = (method: string, url: string, headers: Record<string, string> = {}, body = "") =>
    /Signature=(\w+)$/.exec(
      signAws({ method, url, headers, body }, credentials, atMs)["authorization"] ?? "",
    )?.[1];

  test("get-vanilla", () => {
    expect(signature("GET", "https://example.amazonaws.com/")).toBe(
      "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    );
  });
  test("get-vanilla-query-order-key-case", () => {
    expect(signature("GET", "https://example.amazonaws.com/?Param2=value2&Param1=value1")).toBe(
      "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    );
  });
  test("post-vanilla", () => {
    expect(signature("POST", "https://example.amazonaws.com/")).toBe(
      "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
    );
  });
  test("get-header-value-trim", () => {
    expect(
      signature("GET", "https://example.amazonaws.com/", {
        "My-Header1": " value1",
        "My-Header2": ' "a   b   c"',
      }),
    ).toBe("acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736");
  });
});

describe("Tencent's TC3", () => {
  test("is the signature of the documented example", () => {
    const authorization = signTc3({
      secretId: "AKIDz8krbsJ5yKBZQpn74WFkmLPx3*******",
      secretKey: "Gu5t9xGARNpq86cd98joQYCN3*******",
      service: "cvm",
      host: "cvm.tencentcloudapi.com",
      action: "DescribeInstances",
      contentType: "application/json; charset=utf-8",
      body: '{"Limit": 1, "Filters": [{"Values": ["\\u672a\\u547d\\u540d"], "Name": "instance-name"}]}',
      timestamp: 1_551_113_065,
    });
    expect(authorization).toEndWith(
      "Signature=be4f67d323c78ab9acb7395e43c0dbcf822a9cfac32fea2449a7bc7726b770a3",
    );
  });
});

describe("Google's assertion", () => {
  test("is verified by the account's public key, and a key that is none is refused for other channels", async () => {
    const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const account = {
      projectId: "p",
      clientEmail: "a@b.example",
      privateKeyId: undefined,
      privateKey: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
      tokenUrl: "https://token.example",
    };
    const [head = "", claims = "", signature = ""] = (await signAssertion(account, 1_800_000_000_000)).split(
      ".",
    );
    expect(
      createVerify("RSA-SHA256").update(`${head}.${claims}`).verify(publicKey, signature, "base64url"),
    ).toBe(true);
    expect(JSON.parse(Buffer.from(claims, "base64url").toString())).toMatchObject({
      iss: "a@b.example",
      aud: "https://token.example",
      iat: 1_800_000_000,
    });
    const unusable = await signAssertion({ ...account, privateKey: "nonsense" }, 0).catch(
      (error: unknown) => error,
    );
    expect(unusable).toMatchObject({ code: "channel_key_format", retryable: true });
  });

  test("regions and models go by the documented maps", () => {
    expect(regionOf("us-east5", "x", "x")).toBe("us-east5");
    expect(regionOf('{"default":"a","m":"b"}', "m", "m")).toBe("b");
    expect(regionOf('{"default":"a","m":"b"}', "n", "n")).toBe("a");
    expect(() => regionOf('{"m":"b"}', "n", "n")).toThrow(Failure);
    expect(vertexModel("claude-3-5-sonnet-20241022")).toBe("claude-3-5-sonnet-v2@20241022");
    expect(vertexModel("claude-opus-4-20250514")).toBe("claude-opus-4@20250514");
    expect(vertexModel("gemini-2.5-pro")).toBe("gemini-2.5-pro");
  });
});

test("Bedrock ids follow names, profiles follow regions", () => {
  expect(bedrockModelId("claude-3-haiku-20240307", "eu-west-1")).toBe(
    "eu.anthropic.claude-3-haiku-20240307-v1:0",
  );
  expect(bedrockModelId("claude-3-haiku-20240307", "ap-northeast-1")).toBe(
    "apac.anthropic.claude-3-haiku-20240307-v1:0",
  );
  expect(bedrockModelId("claude-3-5-sonnet-20241022", "eu-west-1")).toBe(
    "anthropic.claude-3-5-sonnet-20241022-v2:0",
  );
  expect(bedrockModelId("us.amazon.nova-pro-v1:0", "us-east-1")).toBe("us.amazon.nova-pro-v1:0");
});

describe("AWS's binary event stream", () => {
  const frames = ["one", "", "two with ü"].map((text) =>
    awsMessage({ ":event-type": "chunk", ":message-type": "event" }, text),
  );
  const all = Buffer.concat(frames);

  test("the published messages are read as they are published", () => {
    const published: [hex: string, headers: Record<string, string>, text: string][] = [
      ["000000100000000005c248eb7d98c8ff", {}, ""],
      ["0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936", {}, "{'foo':'bar'}"],
      [
        "0000003d0000002007fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1",
        { "content-type": "application/json" },
        "{'foo':'bar'}",
      ],
    ];
    for (const [hex, headers, text] of published) {
      const reader = createAwsEventReader();
      const [event] = reader.push(Buffer.from(hex, "hex"));
      expect([event?.headers, new TextDecoder().decode(event?.payload)]).toEqual([headers, text]);
      expect(reader.isEmpty()).toBe(true);
    }
  });

  test("is read whole wherever it is cut", () => {
    for (let cut = 0; cut <= all.length; cut++) {
      const reader = createAwsEventReader();
      const events = [...reader.push(all.subarray(0, cut)), ...reader.push(all.subarray(cut))];
      expect(events.map((event) => new TextDecoder().decode(event.payload))).toEqual([
        "one",
        "",
        "two with ü",
      ]);
      expect(events[0]?.headers).toEqual({ ":event-type": "chunk", ":message-type": "event" });
      expect(reader.isEmpty()).toBe(true);
    }
  });

  test("a flipped bit anywhere is noticed, never read as an event that was not sent", () => {
    const [frame = all] = frames;
    for (let at = 0; at < frame.length; at++) {
      const broken = Buffer.from(frame);
      broken[at] = (broken[at] ?? 0) ^ 1;
      const reader = createAwsEventReader();
      expect(() => {
        const events = reader.push(broken);
        if (events.length === 0) throw new Failure("broken-stream", "broken_stream");
      }).toThrow(Failure);
    }
  });
});

describe("exchanged tokens", () => {
  test("are made once for many callers, again before they expire, and not kept when making fails", async () => {
    const cached = createTokenCache();
    let made = 0;
    const make = () => Promise.resolve({ token: `t${++made}`, expiresAtMs: 1_000_000 });
    expect(await Promise.all([1, 2, 3].map(() => cached("k", 0, make)))).toEqual(["t1", "t1", "t1"]);
    expect(await cached("k", 900_000, make)).toBe("t1");
    expect(await cached("k", 950_000, make)).toBe("t2");
    expect(await cached("other", 0, make)).toBe("t3");
    const failing = cached("bad", 0, () => Promise.reject(new Error("no")));
    expect(await failing.catch(() => "failed")).toBe("failed");
    expect(await cached("bad", 0, make)).toBe("t4");
  });
});
