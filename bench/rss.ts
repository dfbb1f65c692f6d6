import { startTarget } from './target.js'
import { upload } from './wire.js'

/** Highest resident set of the whole process, embedded gateway and all, after one upload of this size. */
export async function rss(quirks: string, size: number): Promise<void> {
  const target = await startTarget(quirks)
  try {
    const before = await target.peakRss()
    const status = await upload(target.proxy, target.s3('PUT', 'huge'), {}, size)
    if (status !== 200) throw new Error(`status ${status}`)
    const after = await target.peakRss()
    const mib = (bytes: number) => Math.round(bytes / 1024 / 1024)
    console.log(`PUT ${mib(size)} MiB`.padEnd(28), `peak RSS ${mib(after)} MiB (${mib(before)} MiB before it)`)
  } finally {
    await target.stop()
  }
}
