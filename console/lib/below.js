// Work on many objects: those that are selected, and all below selected folders.
import { listObjects } from './s3.js'

/**
 * Yields the selected objects in pages of at most 1000: [{ key }].
 * @param items [{ name, folder? }]: of a folder, everything below is meant
 */
export async function* selectedObjects(client, bucket, items, signal) {
  const keys = items.filter(({ folder }) => !folder)
  if (keys.length > 0) yield keys.map(({ name }) => ({ key: name }))
  for (const { name: prefix } of items.filter(({ folder }) => folder)) {
    let token
    do {
      const page = await listObjects(client, bucket, { prefix, token, delimiter: '' }, signal)
      if (page.objects.length > 0) yield page.objects
      token = page.next
    } while (token !== undefined)
  }
}

/** Calls `work` for each item, at most `limit` at the same time. Rejects with the first error, once all have ended. */
export async function eachAtOnce(items, limit, work) {
  const waiting = items[Symbol.iterator]()
  let failure
  const worker = async () => {
    for (const item of waiting) {
      if (failure) return
      await work(item).catch((error) => {
        failure ??= error
      })
    }
  }
  await Promise.all(Array.from({ length: limit }, worker))
  if (failure) throw failure
}
