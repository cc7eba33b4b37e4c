// The forty cases of a hostile reviewer (identity.md 11), and by which tests each is proven: a case whose test is renamed or
// deleted fails here. All but those of pure functions run on both databases; "two nodes" stands where several share one.
import { expect, test } from "bun:test";
import { join } from "node:path";

/** File below test/, and the words that the test's name has. */
type Proof = readonly [file: string, name: string];

const guessing = (name: string): Proof => ["api/guessing", name];
const registration = (name: string): Proof => ["api/registration", name];
const cases = (name: string): Proof => ["api/identity-cases", name];
const oauth = (name: string): Proof => ["api/oauth", name];
const oidc = (name: string): Proof => ["api/oidc", name];
const factors = (name: string): Proof => ["api/second-factors", name];
const sessions = (name: string): Proof => ["api/sessions", name];
const human = (name: string): Proof => ["api/human-check", name];
const folding = (name: string): Proof => ["core/users/folding", name];
const policy = (name: string): Proof => ["core/users/access-policy", name];

const CASES: readonly (readonly [what: string, ...proofs: Proof[]])[] = [
  // Enumeration.
  [
    "code letter, taken or free: same answer, time",
    registration("a taken address is answered alike"),
    guessing("cost the same work and leave the same behind"),
  ],
  [
    "reset likewise, also with SMTP down",
    registration(
      "is answered alike for known, unknown, banned and deleted accounts, also while the server is down",
    ),
    guessing("cost the same work and leave the same behind"),
  ],
  ["sign-in: unknown, wrong, banned, deleted, provider-only", cases("3: unknown, wrong, banned")],
  ["passkey options with and without a name", cases("4: a name in the question"), factors("name nobody")],
  ["factor asked after a right password only", factors("are asked for after a right password only")],
  // Codes.
  ["five wrong, then the right one", registration("five wrong ones end it, also all at once")],
  [
    "a code twice; two at once",
    registration("prove the address that they went to, once"),
    registration("is good for its address and its ten minutes alone"),
  ],
  ["purpose or address A for B", cases("8: a code, a link and a flow")],
  [
    "an hour of guessing over two nodes",
    guessing("an hour of guessing, from a new address each time and over all nodes"),
  ],
  [
    "a dump gives no code",
    registration("the table gives none away"),
    guessing("a code stands in the database under a hash"),
  ],
  [
    "reset link survives GET, HEAD; Host: evil not in the letter",
    registration("the link changes it once, after looking has changed nothing"),
  ],
  ["reset ends sessions, access token; TOTP stays", cases("12: a reset ends sessions")],
  // Addresses, names.
  [
    "case",
    registration("prove the address that they went to"),
    registration("twenty at once under one name in different letters"),
  ],
  [
    "+tag, dots, googlemail",
    folding("an address"),
    registration("without aliases where the operator wants none"),
  ],
  [
    "full-width, dotless i, IDN and xn--",
    folding("an address"),
    folding("in other letters of the same look"),
  ],
  ["comma, CR LF, quotes, %", guessing("an address with quotes, separators, percent signs or line ends")],
  ["whitelist: x.org.evil.com, evilx.org, trailing dot", registration("only for domains of the list")],
  [
    "Admin, Cyrillic a, zero width, bidi, a name that is somebody's address",
    guessing("nobody is called by somebody's address"),
    folding("of the site is kept from strangers"),
  ],
  ["twenty equal registrations: one account, one gift", registration("one account, one gift, one key")],
  [
    "body with role, quota; inviter deleted",
    registration("makes an ordinary account that can sign in at once, whatever else the body says"),
    registration("an invitation goes from link to reward; who is gone"),
  ],
  // Providers.
  [
    "state absent, used, expired, of another browser",
    oauth("absent, wrong, used, expired, of another browser"),
  ],
  [
    "state of A at B; foreign iss",
    oauth("absent, wrong, used, expired, of another browser or provider"),
    oidc("another flow's code, another issuer's answer"),
  ],
  ["attacker's code in the victim's browser", oauth("absent, wrong, used, expired, of another browser")],
  [
    "bind from a foreign page, by access token",
    oauth("to whoever is signed in, from a page of this site"),
    ["api/own-email", "or from a page of another site"],
  ],
  [
    "ID token: signature, alg none, HS256 by public key, aud, age, nonce",
    oidc("a server that forges (case 25)"),
  ],
  ["next: //evil, /\\evil, https:, javascript:", oauth("the way on is a path of this site")],
  ["unverified e-mail of root; verified one of an account", oauth("neither opens the account that has it")],
  ["renamed GitHub login", oauth("an imported login counts once")],
  [
    "two callbacks of one new subject",
    oauth("many returns of one new subject make one account"),
    cases("29, two nodes"),
  ],
  [
    "Telegram: extra, doubled, newline, old, future, replayed, short hash",
    ["core/users/telegram", "with %s is refused"],
    ["core/users/telegram", "is good for five minutes, and two ahead"],
    ["core/users/telegram", "a signature is taken once, also when it comes several times at once"],
  ],
  [
    "302, 500, 5 MB, slow, HTML, private address",
    oauth("redirects, errors, nonsense, floods and closed networks"),
    cases("31: a provider is asked in bounded time"),
  ],
  [
    "policy on a missing field; 10,000 groups",
    policy("a missing field"),
    policy("a tower of ten thousand levels"),
  ],
  [
    "last method unbound; provider off under its users; password sign-in off",
    oauth("lists, gives up, and keeps the last way in"),
    oauth("switches keep a way in for root, and tell whom they leave without one"),
    cases("33: whoever has nothing but a passkey keeps it"),
    cases("33: two roots who switch off two providers at once"),
  ],
  // Factors, sessions.
  [
    "TOTP twice in its window, on two nodes; 10 wrong",
    factors("a code counts once, in its window"),
    factors("two nodes: of one code"),
    factors("five wrong ones end the flow; ten within an hour lock"),
  ],
  [
    "backup code twice at once",
    factors("a backup code works once, also when it comes twice at once"),
    factors("two nodes: of one code, and of one backup code"),
  ],
  [
    "passkey: other challenge, origin, RP id, handle; replay at counter 0; copy; no verification",
    factors("an answer with counter 0 counts once"),
    factors("a counter that does not rise is a copy"),
  ],
  [
    "cookie from before sign-in; revoked within 1.5 s on the other node; logout ends a copied cookie",
    cases("37: a cookie from before the sign-in"),
    sessions("two nodes: a sign-out, a sign-in, a hold and a ban"),
    ["api/devices", "a device that is signed out on one node is out on the other within a second"],
    sessions("a sign-out ends its own session, also for a copied cookie"),
  ],
  [
    "step-up missing, old, of another session, by access token",
    factors("adding a factor asks everybody"),
    factors("an access token proves nothing"),
    cases("38: a proof is the session's"),
  ],
  [
    "human check empty, replayed, other hostname, down; human elsewhere",
    human("%s is refused"),
    human("a service that is away closes its routes"),
    human("what was passed holds for ten minutes at its own address"),
  ],
  [
    "no secret, sid, hash or sealed text in any answer, list, log, error",
    ["api/no-secrets", "no answer of any of it holds what only the database knows"],
    ["api/no-secrets", "nothing that is read afterwards"],
    ["api/no-secrets", "no line of the program's log does"],
  ],
];

test("there are forty, each with tests that exist under their names", async () => {
  expect(CASES).toHaveLength(40);
  const missing: string[] = [];
  const sources = new Map<string, string>();
  for (const [index, [what, ...proofs]] of CASES.entries()) {
    if (proofs.length === 0) missing.push(`${index + 1} ${what}`);
    for (const [file, name] of proofs) {
      const path = join(import.meta.dir, `${file}.test.ts`);
      const source = sources.get(path) ?? (await Bun.file(path).text());
      sources.set(path, source);
      // In quotes after an opening bracket: the name of a test or of a group of them.
      const isNamed = source.split(/\(\s*["'`]/).some((rest) => rest.split("\n", 1)[0]?.includes(name));
      if (!isNamed) missing.push(`${index + 1} ${file}: ${name}`);
    }
  }
  expect(missing).toEqual([]);
});
