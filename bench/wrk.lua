-- Body and result format of the bench's closed-loop runs; headers come by -H, the body by BENCH_BODY. With BENCH_PAUSE_MS
-- each connection waits so long, on average, before its next call.
wrk.method = "POST"
wrk.body = os.getenv("BENCH_BODY")

local pause = tonumber(os.getenv("BENCH_PAUSE_MS") or "")
if pause then
  delay = function() return math.random(0, 2 * pause) end
end

done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format('{"requests":%d,"seconds":%f,"p50Ms":%f,"p99Ms":%f,"errors":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    e.connect + e.read + e.write + e.status + e.timeout))
end
