import type { Spool } from '../../api/state.js'
import { noSuchUpload } from '../errors.js'
import type { PartRoom } from './staged-part.js'
import type { OpenPart, RemoteParts, RemoteUpload } from './staging.js'

interface RemotePartDeps {
  readonly parts: RemoteParts
  readonly name: string
  readonly room: PartRoom
  /** A file for a part whose length is not known: the store needs the length first. */
  readonly spool: () => Promise<Spool>
  /** Called once the part needs no attention any more. */
  readonly gone: () => void
}

/**
 * A part that is being written to a remote store. A part that was committed and is discarded is removed; where that
 * fails, and where the outcome of the commit is not known, a sweep finds the bytes.
 */
export class RemoteStagedPart implements OpenPart {
  readonly file: string
  readonly #deps: RemotePartDeps
  readonly #sink: RemoteUpload | Spool
  #size = 0
  #state: 'writing' | 'committed' | 'kept' | 'discarded' = 'writing'
  #ended = false

  private constructor(file: string, deps: RemotePartDeps, sink: RemoteUpload | Spool) {
    this.file = file
    this.#deps = deps
    this.#sink = sink
  }

  static async open(file: string, length: number | undefined, deps: RemotePartDeps): Promise<RemoteStagedPart> {
    const { parts, name, spool } = deps
    return new RemoteStagedPart(file, deps, length === undefined ? await spool() : await parts.upload(name, length))
  }

  /** Bytes at the store; undefined until they are there. */
  get committed(): number | undefined {
    return this.#state === 'committed' ? this.#size : undefined
  }

  write(chunk: Buffer): void | Promise<void> {
    if (this.#ended) return Promise.reject(noSuchUpload())
    this.#size += chunk.length
    try {
      this.#deps.room.add(chunk.length)
    } catch (error) {
      return Promise.reject(error)
    }
    return this.#sink.write(chunk)
  }

  async finish(): Promise<string> {
    if (this.#ended) throw noSuchUpload()
    if (isUpload(this.#sink)) await this.#sink.commit()
    else await this.#send(this.#sink)
    if (this.#ended) {
      await this.#remove()
      throw noSuchUpload()
    }
    this.#state = 'committed'
    this.#deps.room.giveRest()
    return this.file
  }

  async discard(): Promise<void> {
    const { room, gone } = this.#deps
    if (this.#state === 'kept' || this.#state === 'discarded') return
    const stored = this.#state === 'committed'
    this.#state = 'discarded'
    try {
      if (isUpload(this.#sink)) this.#sink.abort()
      else await this.#sink.discard()
      if (stored) await this.#remove()
    } finally {
      if (this.#ended) room.forget()
      else room.giveAll()
      gone()
    }
  }

  async end(): Promise<void> {
    this.#ended = true
    await this.discard()
  }

  keep(): void {
    this.#state = 'kept'
    this.#deps.gone()
  }

  async #send(spool: Spool): Promise<void> {
    const { parts, name } = this.#deps
    const upload = await parts.upload(name, spool.size)
    try {
      await spool.read((chunk) => upload.write(chunk))
      await upload.commit()
    } catch (error) {
      upload.abort()
      throw error
    }
    await spool.discard()
  }

  /** Bytes that stay are found by a sweep. */
  async #remove(): Promise<void> {
    await this.#deps.parts.remove(this.#deps.name).catch(() => {})
  }
}

function isUpload(sink: RemoteUpload | Spool): sink is RemoteUpload {
  return 'commit' in sink
}
