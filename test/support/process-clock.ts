// A clock of a process's own: a small library before libc adds an offset to the time of day, which a test moves at will.
// Refuses to touch the machine's clock and the monotonic one; where no C compiler is, there is no such clock.
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const SOURCE = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile long long *offset;
__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("TEST_CLOCK_FILE");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *page = mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) offset = page;
  close(file);
}
int clock_gettime(clockid_t id, struct timespec *t) {
  int result = syscall(SYS_clock_gettime, id, t);
  if (result == 0 && offset && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) t->tv_sec += *offset;
  return result;
}
int gettimeofday(struct timeval *t, void *zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  t->tv_sec = now.tv_sec;
  t->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *t) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (t) *t = now.tv_sec;
  return now.tv_sec;
}
`;

export interface TestClock {
  /** What the process's environment needs. */
  env: Record<string, string>;
  /** Seconds that are added to the time of day from now on. */
  set(seconds: number): void;
  remove(): void;
}

export const hasCompiler = process.platform === "linux" && Bun.which("cc") !== null;

export function makeClock(): TestClock {
  const dir = mkdtempSync(join(tmpdir(), "weir-clock-"));
  const [source, library, file] = [join(dir, "clock.c"), join(dir, "clock.so"), join(dir, "offset")];
  writeFileSync(source, SOURCE);
  writeFileSync(file, Buffer.alloc(8));
  const compiled = Bun.spawnSync(["cc", "-shared", "-fPIC", "-O1", "-o", library, source]);
  if (compiled.exitCode !== 0) throw new Error(compiled.stderr.toString());
  return {
    env: { LD_PRELOAD: library, TEST_CLOCK_FILE: file },
    set(seconds) {
      const bytes = Buffer.alloc(8);
      bytes.writeBigInt64LE(BigInt(Math.trunc(seconds)));
      const open = openSync(file, "r+");
      writeSync(open, bytes, 0, 8, 0);
      closeSync(open);
    },
    remove: () => rmSync(dir, { recursive: true, force: true }),
  };
}
