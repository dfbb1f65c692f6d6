import { ok } from './large.js'
import { startTarget, type Target } from './target.js'
import { download, readSlowly, upload } from './wire.js'

const MIB = 1024 * 1024
/** Of the readers that are slower than the gateway: how many, the size of what they read, their pace, and for how long. */
const SLOW = { readers: 16, bytes: 1024 * MIB, bytesPerSecond: 4 * MIB, seconds: 10 }

/** Highest resident set of the whole process, embedded gateway and all, after each of these; each in a process of its own. */
export async function rss(quirks: string, size: number): Promise<void> {
  await peak(
    quirks,
    `PUT ${size / MIB} MiB`,
    async () => {},
    (target) => put(target, size),
  )
  await peak(
    quirks,
    `GET ${size / MIB} MiB`,
    (target) => put(target, size),
    (target) => ok(download(target.proxy, target.s3('GET', 'huge'), {}, size)),
  )
  await peak(
    quirks,
    `${SLOW.readers} slow readers`,
    (target) => put(target, SLOW.bytes),
    async (target) => {
      const path = target.s3('GET', 'huge')
      const readers = Array.from({ length: SLOW.readers }, () =>
        readSlowly(target.proxy, path, SLOW.bytesPerSecond, SLOW.seconds),
      )
      await Promise.all(readers)
    },
  )
}

/** What `prepare` needs is part of the peak: it is told too. */
async function peak(
  quirks: string,
  what: string,
  prepare: (target: Target) => Promise<void>,
  run: (target: Target) => Promise<void>,
): Promise<void> {
  const target = await startTarget(quirks)
  try {
    await prepare(target)
    const before = await target.peakRss()
    await run(target)
    const after = await target.peakRss()
    const mib = (bytes: number) => Math.round(bytes / MIB)
    console.log(`${what.padEnd(24)} peak RSS ${mib(after)} MiB (${mib(before)} MiB before it)`)
  } finally {
    await target.stop()
  }
}

function put(target: Target, size: number): Promise<void> {
  return ok(upload(target.proxy, target.s3('PUT', 'huge'), {}, size))
}
