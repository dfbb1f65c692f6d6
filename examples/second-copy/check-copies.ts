import type { PeriodicRun, PluginHost } from 'dealgate/plugin'
import { COPY, type CopyInput } from './copy-job.js'
import type { Copy, Shelf } from './shelf.js'

/** Reads every copy. Makes a damaged or missing copy again, and removes the copy of an object that is gone. */
export async function checkCopies(shelf: Shelf, host: PluginHost, { signal, mayGoOn }: PeriodicRun): Promise<void> {
  for await (const copy of shelf.all()) {
    if (!mayGoOn()) return
    const { bucket, key } = copy
    try {
      await checkCopy(shelf, host, copy, signal)
    } catch (err) {
      if (signal.aborted) return
      host.log.warn({ err, bucket, key }, 'a second copy could not be checked')
    }
  }
}

async function checkCopy(shelf: Shelf, { own, log, now }: PluginHost, copy: Copy, signal: AbortSignal): Promise<void> {
  const { bucket, key } = copy
  // A bucket that is gone has no objects either.
  const object = (await own.gateway.bucketExists(bucket)) ? await own.store.find(bucket, key) : undefined
  if (!object) return shelf.remove(copy)
  if (await shelf.isIntact(copy, signal)) return shelf.setChecked(copy, now())
  log.warn({ bucket, key }, 'a second copy is damaged or missing, and is made again')
  const input: CopyInput = { bucket, key }
  await own.jobs.create({ kind: COPY, resource: `/${bucket}/${key}`, input, accessKeyId: '' })
}
