-- Body and result format of the bench's closed-loop runs; headers come by -H, the body by BENCH_BODY.
wrk.method = "POST"
wrk.body = os.getenv("BENCH_BODY")

done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format('{"requests":%d,"seconds":%f,"p50Ms":%f,"p99Ms":%f,"errors":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    e.connect + e.read + e.write + e.status + e.timeout))
end
