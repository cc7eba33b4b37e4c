// An epay gateway on loopback: takes the signed form that a browser posts, calls back by GET or POST until it hears "success", and
// tells what became of an order. Written from the protocol's public description, with a signature of its own.
import { createHash } from "node:crypto";

export interface EpayTrade {
  form: Record<string, string>;
  /** The gateway's number of the payment. */
  tradeNo: string;
  isPaid: boolean;
}

export interface FakeEpay {
  url: string;
  pid: string;
  key: string;
  trades: Map<string, EpayTrade>;
  /** What api.php was asked. */
  asked: URLSearchParams[];
  /** Posts the form as a browser would; the trade waits for its payer then. Throws for a wrong signature. */
  submit(target: string, form: Record<string, string>): Promise<EpayTrade>;
  /** The fields of a callback, signed. */
  report(trade: EpayTrade, other?: Record<string, string>): URLSearchParams;
  /** The payer pays; calls `notifyUrl` (the form's where absent), and answers what it heard. */
  pay(trade: EpayTrade, call?: { method?: "GET" | "POST"; notifyUrl?: string }): Promise<string>;
  stop(): Promise<void>;
}

/** MD5 over the sorted fields that are not empty, joined, with the key behind. */
function signOf(fields: Record<string, string>, key: string): string {
  const names = Object.keys(fields).filter((name) => fields[name] !== "" && !/^sign(_type)?$/.test(name));
  const text = names
    .sort()
    .map((name) => `${name}=${fields[name]}`)
    .join("&");
  return createHash("md5").update(text).update(key).digest("hex");
}

export function startFakeEpay(pid = "1001", key = "epay-secret-key"): FakeEpay {
  const trades = new Map<string, EpayTrade>();
  const asked: URLSearchParams[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      if (pathname === "/submit.php") {
        const form = Object.fromEntries(new URLSearchParams(await request.text()));
        if (form["pid"] !== pid || form["sign"] !== signOf(form, key))
          return new Response("bad sign", { status: 400 });
        const number = form["out_trade_no"] ?? "";
        const known = trades.get(number);
        if (!known)
          trades.set(number, {
            form,
            tradeNo: `20261120${trades.size + 1}${number.slice(-6)}`,
            isPaid: false,
          });
        return new Response("pay here");
      }
      if (pathname === "/api.php" && searchParams.get("act") === "order") {
        asked.push(searchParams);
        if (searchParams.get("pid") !== pid || searchParams.get("key") !== key)
          return Response.json({ code: -3, msg: "no merchant" });
        const trade = trades.get(searchParams.get("out_trade_no") ?? "");
        if (!trade) return Response.json({ code: -1, msg: "no order" });
        const { form, tradeNo, isPaid } = trade;
        return Response.json({
          code: 1,
          msg: "ok",
          trade_no: tradeNo,
          out_trade_no: form["out_trade_no"],
          type: form["type"],
          pid: Number(pid),
          name: form["name"],
          money: form["money"],
          status: isPaid ? 1 : 0,
        });
      }
      return new Response("not found", { status: 404 });
    },
  });
  const fake: FakeEpay = {
    url: `http://127.0.0.1:${server.port}`,
    pid,
    key,
    trades,
    asked,
    async submit(target, form) {
      const answer = await fetch(target, { method: "POST", body: new URLSearchParams(form) });
      const trade = trades.get(form["out_trade_no"] ?? "");
      if (!answer.ok || !trade) throw new Error(`the gateway refused the form: ${answer.status}`);
      return trade;
    },
    report({ form, tradeNo }, other = {}) {
      const fields: Record<string, string> = {
        pid,
        trade_no: tradeNo,
        out_trade_no: form["out_trade_no"] ?? "",
        type: form["type"] ?? "",
        name: form["name"] ?? "",
        money: form["money"] ?? "",
        trade_status: "TRADE_SUCCESS",
        ...other,
      };
      return new URLSearchParams({ ...fields, sign: signOf(fields, key), sign_type: "MD5" });
    },
    async pay(trade, { method = "GET", notifyUrl = trade.form["notify_url"] ?? "" } = {}) {
      trade.isPaid = true;
      const fields = fake.report(trade);
      const answer =
        method === "GET"
          ? await fetch(`${notifyUrl}?${fields}`)
          : await fetch(notifyUrl, { method, body: fields });
      return answer.text();
    },
    stop: () => server.stop(true),
  };
  return fake;
}
