import { randomUUID } from 'node:crypto'
import type { Logging } from '../../../common/log.js'
import type { PartRecord, PartWriter } from '../../api/uploads.js'

/** A part that is being written, or is written and not discarded. */
export interface OpenPart extends PartWriter {
  /** Value for PartRecord.file: `<part number>-<random>`. */
  readonly file: string
  /** Marks the bytes as belonging to a record. */
  keep(): void
  /** The upload has ended: all further calls except `discard` throw NoSuchUpload. */
  end(): Promise<void>
}

/**
 * Where the bytes of parts wait until their upload ends. Callers pass upload ids that satisfy `isUploadId`. Every
 * failure is an S3Error. Where several proxies use one place, locks of the callers exclude the end of an upload while a
 * part of it is opened or recorded, but not while its bytes stream.
 */
export interface Staging {
  /** True when `files` is cheaper than looking for each part record that an upload could have. */
  readonly lists: boolean
  /** Prepares for the parts of an upload. Durable once it resolves. */
  makeUpload(uploadId: string): Promise<void>
  /**
   * Throws SlowDown when there is no room for it.
   * @param owner access key id of the upload's identity
   * @param length bytes that the part will have; undefined when not known. Room for the first of them is taken at once,
   *   for the rest as it arrives, so that clients cannot occupy room by lengths that they only declare.
   */
  openPart(uploadId: string, partNumber: number, owner: string, length: number | undefined): Promise<OpenPart>
  /** Throws InternalError unless all bytes of the part are present. */
  check(uploadId: string, part: PartRecord): Promise<void>
  /** Marks the bytes as belonging to a record: discarding the writer no longer removes them. */
  keep(uploadId: string, file: string): void
  /**
   * Names of staged files by part number. A number has several files while it is being replaced. Empty when the upload
   * has none.
   */
  files(uploadId: string): Promise<Map<number, string[]>>
  /**
   * Like `files`, without those that this process is writing.
   * @param before milliseconds since 1970: only files that were last written earlier
   */
  filesBefore(uploadId: string, before: number): Promise<Map<number, string[]>>
  has(uploadId: string, file: string): Promise<boolean>
  /** Throws InternalError unless all bytes are present. */
  read(uploadId: string, part: PartRecord, sink: (chunk: Buffer) => void | Promise<void>): Promise<void>
  /** Removing a missing file is no error. */
  removeFile(uploadId: string, file: string): Promise<void>
  /**
   * Abandons the parts that this process is writing and removes all files of the upload, or begins to: what is left
   * after an interruption is among `uploads`.
   * @param logger who gets the lines about it
   */
  removeUpload(uploadId: string, logger: Logging): Promise<void>
  /**
   * Counts the bytes that are there already. Must be called before the first part.
   * @param ownerOf access key id of the identity that began an upload; '' for an upload without a record
   */
  count(ownerOf: (uploadId: string) => Promise<string>): Promise<void>
  uploads(): Promise<string[]>
  /** Time of the last change to the upload's files, milliseconds since 1970; undefined when there are none. */
  changed(uploadId: string): Promise<number | undefined>
  /** Abandons every part that is being written. */
  close(): Promise<void>
}

/** A place for staged parts that several proxies reach. */
export type StagingLocation =
  | { readonly folder: string }
  /** @param id 16 hexadecimal digits that identify the store of records */
  | { readonly parts: (id: string) => RemoteParts }

const UPLOAD_ID = /^[A-Za-z0-9_-]{16,128}$/

const FILE_NAME = /^([1-9][0-9]{0,4})-[A-Za-z0-9-]{1,64}$/

/** True when the id is safe as part of a path. */
export function isUploadId(uploadId: string): boolean {
  return UPLOAD_ID.test(uploadId)
}

/** The part number in the name of a staged file; undefined for any other name. */
export function partNumberOf(file: string): number | undefined {
  const match = FILE_NAME.exec(file)
  return match ? Number(match[1]) : undefined
}

/** Adds the name of a staged file to those of its part number. */
export function addTo(files: Map<number, string[]>, partNumber: number, file: string): void {
  const names = files.get(partNumber)
  if (names) names.push(file)
  else files.set(partNumber, [file])
}

/** A name for the bytes of a part that no other attempt at it has. */
export function newFile(partNumber: number): string {
  return `${partNumber}-${randomUUID()}`
}

/** Bytes of a part at a store that every proxy reaches. */
export interface RemotePart {
  readonly name: string
  readonly size: number
  /** Time of the write, milliseconds since 1970. */
  readonly changed: number
}

export interface RemoteUpload {
  /** A returned promise is back-pressure. */
  write(chunk: Buffer): void | Promise<void>
  /** Resolves when the store holds all bytes. */
  commit(): Promise<void>
  /** Leaves nothing unless `commit` was called. Safe at any time. */
  abort(): void
}

/** A store of bytes by name, `<folder>/<...>`. All methods throw S3Error. A name is written once. */
export interface RemoteParts {
  /** @param length bytes, exact */
  upload(name: string, length: number): Promise<RemoteUpload>
  find(name: string): Promise<RemotePart | undefined>
  /** Throws NoSuchKey, and InternalError unless there are `size` bytes. */
  read(name: string, size: number, sink: (chunk: Buffer) => void | Promise<void>): Promise<void>
  /** All parts whose name begins with `prefix`, page by page. */
  list(prefix: string): AsyncIterable<RemotePart>
  /** The first segment of all names, page by page. */
  folders(): AsyncIterable<string>
  /** A missing part is no error. */
  remove(name: string): Promise<void>
}
