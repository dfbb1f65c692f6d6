import type { Logging } from '../../../common/log.js'
import type { Spool } from '../../api/state.js'
import type { PartRecord } from '../../api/uploads.js'
import { noSuchUpload, partMissing } from '../errors.js'
import { RemoteStagedPart } from './remote-part.js'
import { OpenParts, type StagedBytes } from './staged-part.js'
import { addTo, isUploadId, newFile, partNumberOf, type RemotePart, type RemoteParts, type Staging } from './staging.js'

interface RemoteStagingOptions {
  readonly parts: RemoteParts
  /** What the parts have at the store together. */
  readonly bytes: StagedBytes
  readonly spool: () => Promise<Spool>
}

/** Removals that are under way at a time. */
const REMOVALS = 8

/**
 * Consecutive part numbers in one folder of an upload: some gateways list a whole folder to find one object, and all
 * folders to list an upload.
 */
const FOLDER_PARTS = 100

/** The bytes of parts at a store that all proxies reach: `<upload id>/<part number / 100>/<part number>-<random>`. */
export class RemoteStaging implements Staging {
  readonly lists = false
  readonly #parts = new OpenParts<RemoteStagedPart>()
  readonly #options: RemoteStagingOptions
  /** Removals of whole uploads, one after the other. Never rejects. */
  #removals: Promise<void> = Promise.resolve()
  #closed = false

  constructor(options: RemoteStagingOptions) {
    this.#options = options
  }

  /** Folders are parts of names. */
  async makeUpload(uploadId: string): Promise<void> {
    folderOf(uploadId)
  }

  async openPart(
    uploadId: string,
    partNumber: number,
    owner: string,
    length: number | undefined,
  ): Promise<RemoteStagedPart> {
    const { parts, bytes, spool } = this.#options
    const file = newFile(partNumber)
    const name = nameOf(uploadId, file)
    const room = bytes.roomFor(uploadId, owner, length)
    return this.#parts.open(room, uploadId, (gone) =>
      RemoteStagedPart.open(file, length, { parts, name, room, spool, gone }),
    )
  }

  keep(uploadId: string, file: string): void {
    this.#parts.keep(uploadId, file)
  }

  async check(uploadId: string, part: PartRecord): Promise<void> {
    const isHere = ({ file, committed }: RemoteStagedPart) => file === part.file && committed === part.size
    if (this.#parts.of(uploadId).some(isHere)) return
    const found = await this.#find(uploadId, part.file)
    if (found?.size !== part.size || partNumberOf(part.file) !== part.partNumber) throw partMissing(part, found?.size)
  }

  files(uploadId: string): Promise<Map<number, string[]>> {
    return this.filesBefore(uploadId, Number.POSITIVE_INFINITY)
  }

  async filesBefore(uploadId: string, before: number): Promise<Map<number, string[]>> {
    const open = new Set(this.#parts.of(uploadId).map((part) => part.file))
    const found = new Map<number, string[]>()
    for await (const { name, changed } of this.#list(uploadId)) {
      const file = fileOf(name)
      const number = partNumberOf(file)
      if (number !== undefined && changed < before && !open.has(file)) addTo(found, number, file)
    }
    return found
  }

  async has(uploadId: string, file: string): Promise<boolean> {
    return (await this.#find(uploadId, file)) !== undefined
  }

  async read(uploadId: string, part: PartRecord, sink: (chunk: Buffer) => void | Promise<void>): Promise<void> {
    await this.#options.parts.read(nameOf(uploadId, part.file), part.size, sink)
  }

  async removeFile(uploadId: string, file: string): Promise<void> {
    const found = await this.#find(uploadId, file)
    if (!found) return
    await this.#options.parts.remove(found.name)
    this.#options.bytes.give(uploadId, found.size)
  }

  /** An upload may have 10,000 parts, and each takes a call: the caller does not wait for that. */
  async removeUpload(uploadId: string, logger: Logging): Promise<void> {
    await Promise.all(this.#parts.of(uploadId).map((part) => part.end()))
    this.#options.bytes.give(uploadId, Number.POSITIVE_INFINITY)
    this.#removals = this.#removals.then(() => this.#removeAll(uploadId, logger))
  }

  async count(ownerOf: (uploadId: string) => Promise<string>): Promise<void> {
    const found = new Map<string, number>()
    for await (const { name, size } of this.#options.parts.list('')) {
      const uploadId = name.slice(0, name.indexOf('/'))
      found.set(uploadId, (found.get(uploadId) ?? 0) + size)
    }
    const owners = new Map<string, string>()
    for (const uploadId of found.keys()) owners.set(uploadId, await ownerOf(uploadId))
    for (const [uploadId, bytes] of found) this.#options.bytes.found(uploadId, owners.get(uploadId) ?? '', bytes)
  }

  async uploads(): Promise<string[]> {
    const found: string[] = []
    for await (const folder of this.#options.parts.folders()) if (isUploadId(folder)) found.push(folder)
    return found
  }

  async changed(uploadId: string): Promise<number | undefined> {
    let last: number | undefined
    for await (const { changed } of this.#list(uploadId)) last = Math.max(last ?? 0, changed)
    return last
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#parts.discardAll()
    await this.#removals
  }

  async #removeAll(uploadId: string, logger: Logging): Promise<void> {
    try {
      const removing = new Set<Promise<void>>()
      for await (const { name } of this.#list(uploadId)) {
        if (this.#closed) break
        const one = this.#options.parts.remove(name).finally(() => removing.delete(one))
        removing.add(one)
        // The loop's own error, or that of the last ones, is reported below.
        one.catch(() => {})
        if (removing.size >= REMOVALS) await Promise.race(removing)
      }
      await Promise.all(removing)
    } catch (err) {
      logger.log.warn({ err, uploadId }, 'could not remove all parts of an ended upload; the next sweep does')
    }
  }

  #list(uploadId: string): AsyncIterable<RemotePart> {
    return this.#options.parts.list(folderOf(uploadId))
  }

  async #find(uploadId: string, file: string): Promise<RemotePart | undefined> {
    return partNumberOf(file) === undefined ? undefined : this.#options.parts.find(nameOf(uploadId, file))
  }
}

function folderOf(uploadId: string): string {
  if (!isUploadId(uploadId)) throw noSuchUpload()
  return `${uploadId}/`
}

function nameOf(uploadId: string, file: string): string {
  return `${folderOf(uploadId)}${Math.floor((partNumberOf(file) ?? 0) / FOLDER_PARTS)}/${file}`
}

function fileOf(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1)
}
