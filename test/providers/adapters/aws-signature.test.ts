// SigV4 held against the vectors that AWS publishes as its signature test suite.
// The suite's key, region, service and date are the same in every vector.
import { expect, test } from "bun:test";
import { signAws } from "../../../src/providers/adapters/aws-signature.ts";

const CREDENTIALS = { accessKey: "AKIDEXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };
const SCOPE = { region: "us-east-1", service: "service", nowMs: Date.UTC(2015, 7, 30, 12, 36, 0) };

interface Vector {
  name: string;
  method?: string;
  path?: string;
  headers?: Record<string, string>;
  body?: string;
  signedHeaders?: string;
  signature: string;
}

const FORM = { "Content-Type": "application/x-www-form-urlencoded" };

const VECTORS: readonly Vector[] = [
  { name: "get-vanilla", signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31" },
  {
    name: "get-vanilla-query-order-key-case",
    path: "/?Param2=value2&Param1=value1",
    signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
  },
  {
    name: "get-vanilla-empty-query-key",
    path: "/?Param1=value1",
    signature: "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb",
  },
  {
    name: "post-vanilla",
    method: "POST",
    signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
  },
  {
    name: "post-header-key-sort",
    method: "POST",
    headers: { "My-Header1": "value1" },
    signedHeaders: "host;my-header1;x-amz-date",
    signature: "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c",
  },
  {
    name: "post-x-www-form-urlencoded",
    method: "POST",
    headers: FORM,
    body: "Param1=value1",
    signedHeaders: "content-type;host;x-amz-date",
    signature: "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
  },
];

for (const vector of VECTORS) {
  test(`the published vector ${vector.name} is signed to the letter`, () => {
    const url = new URL(`https://example.amazonaws.com${vector.path ?? "/"}`);
    const request = { method: vector.method ?? "GET", url, body: vector.body ?? "" };
    const signed = signAws(CREDENTIALS, SCOPE, { ...request, headers: vector.headers ?? {} });
    expect(signed["x-amz-date"]).toBe("20150830T123600Z");
    expect(signed.authorization).toBe(
      "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, " +
        `SignedHeaders=${vector.signedHeaders ?? "host;x-amz-date"}, Signature=${vector.signature}`,
    );
  });
}

test("a path is signed as it is sent, escaped once more: model ids with a colon would be refused otherwise", () => {
  const sign = (path: string): string =>
    signAws(CREDENTIALS, SCOPE, { method: "POST", url: new URL(`https://h${path}`), body: "" }).authorization;
  expect(sign("/model/a%3A0/invoke")).not.toBe(sign("/model/a:0/invoke"));
  expect(sign("/model/a%2Fb/invoke")).not.toBe(sign("/model/a/b/invoke"));
});
