import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { type OwnRequest, type Reply, S3Error } from 'dealgate/plugin'
import { CsvReader, decodeKey } from './csv.js'
import type { ManifestSource, Row } from './order.js'
import { contentOf, textOf } from './replies.js'
import type { Send } from './task.js'

export const FIELDS: readonly string[] = ['Bucket', 'Key', 'VersionId', 'Ignore']

/** Largest manifest.json, bytes: one of 10,000 files is 2 MB. */
const MAX_INVENTORY = 16 * 1024 * 1024

/** Most bytes of all files of a manifest, decompressed: gzip makes a thousand of one, and rows are recorded. */
const MAX_MANIFEST_BYTES = 4 * 1024 ** 3

/** The rows of a manifest, in their order. Throws S3Error InvalidManifest. */
export async function* rowsOfManifest(
  source: ManifestSource,
  etag: string,
  send: Send,
  maxBytes = MAX_MANIFEST_BYTES,
): AsyncGenerator<Row> {
  let left = maxBytes
  const bounded = async function* (bytes: AsyncIterable<Buffer>) {
    for await (const piece of bytes) {
      left -= piece.length
      if (left < 0) throw invalid(`it has more than ${maxBytes} bytes, decompressed`)
      yield piece
    }
  }
  if (source.format === 'S3BatchOperations_CSV_20180820') {
    const reply = await send(readOf(source, etag))
    yield* rowsOf(bounded(contentOf(reply)), source.fields, source.key)
    return
  }
  const reply = await send(readOf(source, etag))
  if (Number(reply.headers['content-length'] ?? 0) > MAX_INVENTORY) throw invalid('manifest.json is larger than 16 MiB')
  const { bucket, fields, files } = inventoryOf(await textOf(reply))
  for (const { key, md5 } of files) yield* rowsOf(bounded(fileOf(await send(get(bucket, key)), key, md5)), fields, key)
}

/** The entity tag of a manifest, as it is now. Throws S3Error, such as NoSuchKey. */
export async function etagOf(source: ManifestSource, send: Send): Promise<string> {
  const { bucket, key, versionId } = source
  const { headers } = await send({ method: 'HEAD', bucket, key, ...(versionId && { query: { versionId } }) })
  return String(headers.etag ?? '').replaceAll('"', '')
}

function readOf({ bucket, key, versionId }: ManifestSource, etag: string): OwnRequest {
  return { ...get(bucket, key), ...(versionId && { query: { versionId } }), headers: { 'if-match': `"${etag}"` } }
}

function get(bucket: string, key: string): OwnRequest {
  return { method: 'GET', bucket, key }
}

async function* rowsOf(bytes: AsyncIterable<Buffer>, fields: readonly string[], file: string): AsyncGenerator<Row> {
  const csv = new CsvReader(fields.length)
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const at = (name: string) => fields.indexOf(name)
  const [bucketAt, keyAt, versionAt] = [at('Bucket'), at('Key'), at('VersionId')]
  let line = 0
  const row = (values: readonly string[]): Row => {
    line++
    if (values.length !== fields.length)
      throw invalid(`line ${line} of ${file} has ${values.length} fields, and ${fields.length} are declared`)
    const [bucket, key, version] = [values[bucketAt], values[keyAt], values[versionAt]]
    if (!bucket || !key) throw invalid(`line ${line} of ${file} lacks its bucket or key`)
    if (line === 1 && bucket === 'Bucket' && key === 'Key')
      throw invalid(`${file} begins with a line of names: leave it out`)
    if (versionAt >= 0 && !version) throw invalid(`line ${line} of ${file} lacks its version id`)
    const decoded = keyOf(key, () => invalid(`the key in line ${line} of ${file} is not percent-encoded UTF-8`))
    return version === undefined ? [bucket, decoded] : [bucket, decoded, version]
  }
  try {
    for await (const piece of bytes)
      for (const values of csv.push(decoder.decode(piece, { stream: true }))) yield row(values)
    for (const values of csv.push(decoder.decode())) yield row(values)
    for (const values of csv.end()) yield row(values)
  } catch (error) {
    if (error instanceof RangeError || error instanceof TypeError)
      throw invalid(`${file}, after line ${line}: ${error.message}`)
    throw error
  }
}

function keyOf(text: string, refusal: () => S3Error): string {
  try {
    return decodeKey(text)
  } catch {
    throw refusal()
  }
}

interface Inventory {
  readonly bucket: string
  readonly fields: readonly string[]
  readonly files: readonly { readonly key: string; readonly md5: string }[]
}

/** Reads manifest.json of an inventory: https://docs.aws.amazon.com/AmazonS3/latest/userguide/storage-inventory.html */
function inventoryOf(text: string): Inventory {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    throw invalid('manifest.json is not JSON')
  }
  const { fileFormat, fileSchema, destinationBucket, files } = (parsed ?? {}) as Record<string, unknown>
  if (fileFormat !== 'CSV') throw invalid('only inventories in CSV can be manifests')
  if (typeof fileSchema !== 'string' || typeof destinationBucket !== 'string' || !Array.isArray(files))
    throw invalid('manifest.json lacks fileSchema, destinationBucket or files')
  const fields = fileSchema.split(',').map((name) => name.trim())
  if (!fields.includes('Bucket') || !fields.includes('Key')) throw invalid('fileSchema lacks Bucket or Key')
  return {
    bucket: destinationBucket.replace(/^arn:[^:]*:s3:::/, ''),
    fields,
    files: files.map(({ key, MD5checksum }) => {
      const md5 = String(MD5checksum ?? '').toLowerCase()
      // The ETag of manifest.json stands for the files only as far as it names their content.
      if (!/^[0-9a-f]{32}$/.test(md5)) throw invalid('manifest.json lacks the MD5checksum of a file')
      return { key: String(key), md5 }
    }),
  }
}

async function* fileOf(reply: Reply, key: string, md5: string): AsyncGenerator<Buffer> {
  const hash = createHash('md5')
  const read = async function* () {
    for await (const piece of contentOf(reply)) {
      hash.update(piece)
      // Zlib reads it later.
      yield Buffer.from(piece)
    }
    if (hash.digest('hex') !== md5) throw invalid(`${key} is not the file of manifest.json: its MD5 differs`)
  }
  const source = Readable.from(read())
  if (!key.endsWith('.gz')) yield* source
  else {
    const gunzip = createGunzip()
    source.on('error', (error) => gunzip.destroy(error))
    try {
      yield* source.pipe(gunzip) as AsyncIterable<Buffer>
    } catch (error) {
      throw error instanceof S3Error ? error : invalid(`${key} is not a complete gzip file`)
    } finally {
      source.destroy()
    }
  }
}

/** The failure of a job whose manifest cannot be read as a whole. */
function invalid(problem: string): S3Error {
  return new S3Error('InvalidManifest', { status: 400, message: `The manifest cannot be used: ${problem}.` })
}
