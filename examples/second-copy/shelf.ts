import { createHash, randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { PluginState, Records } from 'dealgate/plugin'

/** A copy of an object. Plain JSON. */
export interface Copy {
  readonly bucket: string
  readonly key: string
  /** Revision of the copied object; another object of the same key has another revision. */
  readonly revision: string
  readonly bytes: number
  /** Hex. */
  readonly sha256: string
  /** ms since 1970. */
  readonly copied: number
  /** When the copy was last found intact, ms since 1970. */
  readonly checked: number
}

/** Stores each copy as a file, with a record that describes it. */
export class Shelf {
  readonly #folder: string
  readonly #records: Records<Copy>

  constructor(folder: string, state: PluginState) {
    this.#folder = folder
    this.#records = state.records('shelf-copies')
  }

  async open(): Promise<void> {
    await mkdir(this.#folder, { recursive: true })
  }

  get(bucket: string, key: string): Promise<Copy | undefined> {
    return this.#records.get(nameOf(bucket, key))
  }

  async *all(): AsyncGenerator<Copy> {
    for await (const [, copy] of this.#records.entries()) yield copy
  }

  /** Writes a copy. The copy is durable once its record is written. @param fill delivers the bytes */
  async put(
    object: Pick<Copy, 'bucket' | 'key' | 'revision'>,
    time: number,
    fill: (sink: (chunk: Buffer) => Promise<void>) => Promise<void>,
  ): Promise<Copy> {
    const { bucket, key } = object
    const name = nameOf(bucket, key)
    const temporary = join(this.#folder, `${name}.${randomUUID()}`)
    const hash = createHash('sha256')
    let bytes = 0
    try {
      const file = await open(temporary, 'wx')
      try {
        await fill(async (chunk) => {
          hash.update(chunk)
          bytes += chunk.length
          await file.writeFile(chunk)
        })
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(temporary, this.#file(name))
    } catch (error) {
      await rm(temporary, { force: true })
      throw error
    }
    const copy: Copy = { ...object, bytes, sha256: hash.digest('hex'), copied: time, checked: time }
    await this.#records.set(name, copy)
    return copy
  }

  /** Reads a copy and compares it with its record. Resolves false if the copy is missing or damaged. */
  async isIntact({ bucket, key, sha256 }: Copy, signal: AbortSignal): Promise<boolean> {
    const hash = createHash('sha256')
    try {
      for await (const chunk of createReadStream(this.#file(nameOf(bucket, key)), { signal })) hash.update(chunk)
    } catch (error) {
      signal.throwIfAborted()
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
      throw error
    }
    return hash.digest('hex') === sha256
  }

  async setChecked({ bucket, key, revision }: Copy, time: number): Promise<void> {
    await this.#records.change(nameOf(bucket, key), (copy) =>
      copy?.revision === revision ? { ...copy, checked: time } : copy,
    )
  }

  async remove({ bucket, key }: Pick<Copy, 'bucket' | 'key'>): Promise<void> {
    const name = nameOf(bucket, key)
    await this.#records.delete(name)
    await rm(this.#file(name), { force: true })
  }

  #file(name: string): string {
    return join(this.#folder, name)
  }
}

/** A hash, because keys can be longer than file names. Bucket names contain no NUL, so no two objects share a name. */
function nameOf(bucket: string, key: string): string {
  return createHash('sha256').update(`${bucket}\0${key}`).digest('hex')
}
