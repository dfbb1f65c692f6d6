import { type Context, type Logger, type Perform, type RequestOwner, S3Error } from 'dealgate/plugin'
import { EntryNames } from './names.js'
import { ObjectReader, type Transfer } from './reader.js'
import { type Held, Paths } from './room.js'
import type { Selection } from './selection.js'
import { pagesOf } from './walk.js'
import { type Write, ZipWriter } from './writer.js'

/** What an archive is made for: its bytes are read by requests in the name of the caller. */
export interface Order {
  readonly bucket: string
  readonly selection: Selection
  readonly owner: RequestOwner
  readonly perform: Perform
  readonly log: Logger
  /** The paths that it has in memory, which it releases when it ends. */
  readonly held: Held
}

/**
 * The archive as a download, which is made while it is sent: what is in memory are some chunks, the paths, and the
 * directory. It shows each object as it is when its turn comes. One that was deleted since the selection was looked at
 * is left out if a prefix stands for it, as a later listing would; any other failure cuts the connection, so that no
 * archive looks complete that is not.
 */
export class ArchiveDownload implements Transfer {
  readonly #order: Order
  readonly #context: Context
  readonly #abort = new AbortController()

  constructor(order: Order, context: Context) {
    this.#order = order
    this.#context = context
  }

  async lend(sink: Parameters<Transfer['lend']>[0]): Promise<void> {
    const { log, bucket } = this.#order
    const { signal } = this.#abort
    let isGone = false
    try {
      await this.#send(
        (bytes) =>
          new Promise((resolve, reject) => {
            if (signal.aborted) reject(signal.reason)
            else
              sink(bytes, (error) => {
                if (error === undefined) return resolve()
                // The connection says so before it is closed.
                isGone = true
                reject(error)
              })
          }),
      )
    } catch (err) {
      // The client sees a connection that ends: the reason is here alone.
      if (!isGone && !signal.aborted) log.warn({ err, bucket }, 'an archive was cut before its end')
      throw err
    } finally {
      this.discard()
    }
  }

  discard(): void {
    this.#order.held.release()
    this.#abort.abort(new S3Error('ServiceUnavailable', { message: 'The archive is sent no further.' }))
  }

  async #send(write: Write): Promise<void> {
    const { bucket, selection, owner, perform, held } = this.#order
    const zip = new ZipWriter(write, selection.level)
    const names = new EntryNames()
    const reader = new ObjectReader({ bucket, owner, perform, signal: this.#abort.signal })
    const paths = new Paths()
    for await (const { place, size, modified, content } of reader.read(
      pagesOf(this.#context, bucket, selection, paths),
    )) {
      held.grow(paths.length)
      const path = pathOf(place.key, size, selection, names)
      if (path !== undefined) await zip.add({ path, modified, size }, size > 0 ? content : undefined)
    }
    await zip.end()
  }
}

/** Undefined for the mark of a folder that is there already: the one to which the paths are relative, or another's. */
function pathOf(key: string, size: number, { folder }: Selection, names: EntryNames): string | undefined {
  const name = key.startsWith(folder) ? key.slice(folder.length) : key
  return name === '' && size === 0 ? undefined : names.of(name, size > 0)
}
