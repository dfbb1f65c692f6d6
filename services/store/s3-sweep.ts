import { childText, type XmlNode } from '../../common/xml.js'
import type { ServicesLog } from '../log.js'
import { isNameless, type WithRow } from './bodies.js'
import type { S3Client } from './s3-client.js'
import { isPassing, S3Refusal } from './s3-refusal.js'

/** Names of bodies; the sweep leaves everything else alone. */
const NAME = /^([0-9a-f]{16})[0-9a-f]{16}(?:\.[0-9a-f]{16})?$/

interface S3SweepOptions {
  /** What all keys begin with, up to a slash. */
  readonly folder: string
  /** Age from which a body without a row is removed, ms. */
  readonly orphanMs: number
  readonly keyOf: (name: string) => string
  /** True for a name that has no row yet. */
  readonly isUnderway: (name: string) => boolean
  /** True for a name that must stay, besides. */
  readonly isRead: (name: string) => boolean
  readonly isStopping: () => boolean
  /** Removes a body, or an upload of it. Resolves with false when nothing may be removed now. */
  readonly remove: (name: string, uploadId?: string) => Promise<boolean>
}

/** Removes bodies without a row from a store, and uploads that have not been completed, once they are old. */
export class S3Sweep {
  readonly #client: S3Client
  readonly #options: S3SweepOptions
  readonly #log: ServicesLog
  readonly #withRow: WithRow
  readonly #refusals: S3Refusal[] = []

  constructor(client: S3Client, withRow: WithRow, options: S3SweepOptions, log: ServicesLog) {
    this.#client = client
    this.#withRow = withRow
    this.#options = options
    this.#log = log
  }

  /** Resolves with the number of removals. */
  async run(): Promise<number> {
    const count = (await this.#bodies()) + (await this.#uploads())
    const [err] = this.#refusals
    if (err) this.#log.warn({ err, refused: this.#refusals.length }, 'The store refuses to remove bodies.')
    return count
  }

  /** Resolves with 1 for a removal, with 0 for one that the store refuses, and with undefined when none may be made. */
  async #one(name: string, uploadId?: string): Promise<number | undefined> {
    try {
      return (await this.#options.remove(name, uploadId)) ? 1 : undefined
    } catch (error) {
      if (!(error instanceof S3Refusal) || isPassing(error)) throw error
      this.#refusals.push(error)
      return 0
    }
  }

  async #bodies(): Promise<number> {
    const { folder, isUnderway, isRead, isStopping } = this.#options
    const withRow = this.#withRow
    const isIdle = (name: string) => !isUnderway(name) && !isRead(name)
    const isGarbage = async (name: string) => isIdle(name) && (await isNameless(withRow, name)) && isIdle(name)
    const query = { 'list-type': '2', prefix: folder }
    let count = 0
    let after: string | undefined
    do {
      const page = await this.#list({ ...query, ...(after && { 'continuation-token': after }) }, 'ListBucketResult')
      const entries = page.children.get('Contents') ?? []
      const names = entries.map((entry) => this.#oldName(entry, 'LastModified')).filter((name) => name !== undefined)
      const rows = await withRow(names)
      for (const name of names) {
        if (isStopping()) return count
        if (rows.has(name) || !(await isGarbage(name))) continue
        const removed = await this.#one(name)
        if (removed === undefined) return count
        count += removed
      }
      after = childText(page, 'IsTruncated') === 'true' ? childText(page, 'NextContinuationToken') : undefined
    } while (after)
    return count
  }

  async #uploads(): Promise<number> {
    const { folder, isUnderway, isStopping } = this.#options
    let count = 0
    let after: Record<string, string> | undefined = {}
    while (after !== undefined) {
      const page = await this.#list({ uploads: '', prefix: folder, ...after }, 'ListMultipartUploadsResult')
      for (const entry of page.children.get('Upload') ?? []) {
        if (isStopping()) return count
        const name = this.#oldName(entry, 'Initiated')
        const uploadId = childText(entry, 'UploadId')
        // A row does not protect an upload: that of a body with a row has been completed.
        if (name === undefined || uploadId === undefined || isUnderway(name)) continue
        const removed = await this.#one(name, uploadId)
        if (removed === undefined) return count
        count += removed
      }
      const marker = childText(page, 'NextKeyMarker')
      after =
        childText(page, 'IsTruncated') === 'true' && marker
          ? { 'key-marker': marker, 'upload-id-marker': childText(page, 'NextUploadIdMarker') ?? '' }
          : undefined
    }
    return count
  }

  #list(query: Readonly<Record<string, string>>, root: string): Promise<XmlNode> {
    const asked = { method: 'GET', key: '', query } as const
    return this.#client.retry((_, signal) => this.#client.document(asked, root, signal))
  }

  /** The name of a body that is old by our clock and by that of the store; undefined for all else. */
  #oldName(entry: XmlNode, time: string): string | undefined {
    const key = childText(entry, 'Key') ?? ''
    const name = key.slice(key.lastIndexOf('/') + 1)
    const begun = NAME.exec(name)?.[1]
    if (begun === undefined || this.#options.keyOf(name) !== key) return undefined
    const youngest = Date.now() - this.#options.orphanMs
    const isOld = Number(BigInt(`0x${begun}`) / 1_000_000n) <= youngest
    return isOld && Date.parse(childText(entry, time) ?? '') <= youngest ? name : undefined
  }
}
