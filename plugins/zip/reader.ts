import { type Perform, type Reply, type RequestOwner, S3Error } from 'dealgate/plugin'
import type { Place } from './walk.js'
import type { Content } from './writer.js'

export type Transfer = Extract<Reply['body'], { readonly download: unknown }>['download']

/** Objects that are read while others are sent, and the largest of them, bytes: together at most 512 KiB. */
const AHEAD = 8
const MAX_AHEAD_BYTES = 64 * 1024

interface Read {
  readonly place: Place
  readonly size: number
  /** ms since 1970. */
  readonly modified: number
  readonly content: Content
}

interface ReaderDeps {
  readonly bucket: string
  readonly owner: RequestOwner
  readonly perform: Perform
  readonly signal: AbortSignal
}

/** Reads objects by requests in the name of a caller. */
export class ObjectReader {
  readonly #deps: ReaderDeps

  constructor(deps: ReaderDeps) {
    this.#deps = deps
  }

  /**
   * Yields the objects in their order. Small ones are read ahead, since each costs a request; a large one begins when
   * its turn comes, so that no download waits for a slow client. Rejects with S3Error.
   */
  async *read(pages: AsyncIterable<readonly Place[]>): AsyncGenerator<Read> {
    for await (const places of pages) {
      const ahead: Promise<Read | undefined>[] = []
      for (const [i, place] of places.entries()) {
        this.#deps.signal.throwIfAborted()
        for (let next = i + ahead.length; next < Math.min(i + AHEAD, places.length); next++) {
          const small = isSmall(places[next]) ? this.#whole(places[next] as Place) : undefined
          if (!small) break
          // Whoever awaits it gets the error; nobody does after an earlier one.
          small.catch(() => {})
          ahead.push(small)
        }
        const read = await (ahead.shift() ?? this.#open(place))
        if (read) yield read
      }
    }
  }

  async #whole(place: Place): Promise<Read | undefined> {
    const opened = await this.#open(place)
    if (!opened) return undefined
    // It may have become a large one since it was listed.
    if (opened.size > MAX_AHEAD_BYTES) return opened
    const chunks: Buffer[] = []
    await opened.content(async (bytes) => void chunks.push(Buffer.from(bytes)))
    const content: Content = async (sink) => {
      for (const chunk of chunks) await sink(chunk)
    }
    return { ...opened, content }
  }

  /** @returns undefined for one that is gone, where a prefix stands for it */
  async #open(place: Place): Promise<Read | undefined> {
    const { bucket, owner, perform, signal } = this.#deps
    const { key, versionId, listed } = place
    const query: Record<string, string> = versionId === undefined ? {} : { versionId }
    try {
      const { status, body, headers } = await perform(owner, { method: 'GET', bucket, key, query }, signal)
      const download = typeof body === 'object' && 'download' in body ? body.download : undefined
      const [size, time] = [Number(headers['content-length']), Date.parse(String(headers['last-modified']))]
      const modified = Number.isNaN(time) ? 0 : time
      if (status === 200 && size > 0 && download) return { place, size, modified, content: contentOf(download, signal) }
      download?.discard()
      if (status === 200 && size === 0) return { place, size, modified, content: NOTHING }
      throw new Error(`GetObject answered with the status ${status} and ${size} bytes`)
    } catch (error) {
      if (listed && error instanceof S3Error && error.code === 'NoSuchKey') return undefined
      throw error
    }
  }
}

function isSmall(place: Place | undefined): boolean {
  return place?.listed !== undefined && place.listed.size <= MAX_AHEAD_BYTES
}

/**
 * Passes a download on. Several chunks may be lent at a time: each follows when the one before it was taken. A download
 * that is never passed on ends with the archive.
 */
function contentOf(download: Transfer, signal: AbortSignal): Content {
  const leave = () => download.discard()
  signal.addEventListener('abort', leave, { once: true })
  return async (sink) => {
    try {
      let before = Promise.resolve()
      await download.lend((chunk, done) => {
        before = before.then(() => sink(chunk))
        before.then(() => done(), done)
      })
    } finally {
      signal.removeEventListener('abort', leave)
      leave()
    }
  }
}

const NOTHING: Content = async () => {}
