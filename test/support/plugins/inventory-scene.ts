import { gunzipSync } from 'node:zlib'
import { GetObjectCommand, type InventoryConfiguration, type S3, type S3Client } from '@aws-sdk/client-s3'
import { parse } from 'csv-parse/sync'
import { md5 } from '../content/content.js'
import { signedCall } from '../sign/signed-request.js'

export const Bucket = 'source'
export const REPORTS = 'reports'

interface Asked {
  readonly format?: 'CSV' | 'Parquet'
  readonly fields?: readonly string[]
  readonly to?: string
  readonly enabled?: boolean
  readonly more?: Partial<InventoryConfiguration>
  readonly destination?: object
}

/** Sets a configuration on `source`, by default one that no schedule runs. */
export async function configure(s3: S3, Id: string, asked: Asked = {}): Promise<void> {
  const { format: Format = 'CSV', fields = [], to = REPORTS, enabled: IsEnabled = false, more, destination } = asked
  await s3.putBucketInventoryConfiguration({
    Bucket,
    Id,
    InventoryConfiguration: {
      Destination: { S3BucketDestination: { Bucket: `arn:aws:s3:::${to}`, Format, Prefix: 'inv', ...destination } },
      IsEnabled,
      Id,
      IncludedObjectVersions: 'Current',
      ...(fields.length > 0 && { OptionalFields: fields as 'Size'[] }),
      Schedule: { Frequency: 'Daily' },
      ...more,
    },
  })
}

export interface Inventory {
  readonly Id: string
  readonly JobId: string
  readonly Manifest: string
  readonly Files: number
  readonly Rows: number
}

interface Keys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

export const KEYS: Keys = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' }

/** Has an inventory written now, and waits for the answer. */
export async function runNow(endpoint: string, Id: string, keys = KEYS) {
  const asked = { body: { Id }, headers: { prefer: 'wait=300' } }
  const { status, body } = await signedCall(endpoint, keys, 'POST', `/${Bucket}?x-inventory=&format=json`, asked)
  return { status, json: JSON.parse(body) }
}

export async function inventory(endpoint: string, Id: string): Promise<Inventory> {
  const { status, json } = await runNow(endpoint, Id)
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(json)}`)
  return json
}

/** The states of the configurations of `source`. */
export async function states(endpoint: string) {
  const { body } = await signedCall(endpoint, KEYS, 'GET', `/${Bucket}?x-inventory=&format=json`)
  return JSON.parse(body).Inventories
}

export async function bytesOf(s3: S3Client, Key: string, bucket = REPORTS): Promise<Buffer> {
  const { Body } = await s3.send(new GetObjectCommand({ Bucket: bucket, Key }))
  return Buffer.from((await Body?.transformToByteArray()) ?? [])
}

/** Checks the digests of a manifest and of its files, and returns the manifest with its files. */
export async function read(s3: S3Client, manifestKey: string, bucket = REPORTS) {
  const text = await bytesOf(s3, manifestKey, bucket)
  const checksum = (await bytesOf(s3, manifestKey.replace(/json$/, 'checksum'), bucket)).toString()
  if (checksum.trim() !== md5(text)) throw new Error(`the checksum of ${manifestKey} is ${checksum}`)
  const manifest = JSON.parse(text.toString())
  const files: Buffer[] = []
  for (const { key, size, MD5checksum } of manifest.files) {
    const file = await bytesOf(s3, key, bucket)
    if (file.length !== size || md5(file) !== MD5checksum) throw new Error(`${key} is not what the manifest says`)
    files.push(file)
  }
  return { manifest, files }
}

/** The rows of a CSV inventory, by the names of their columns, with decoded keys. */
export async function inventoryRows(
  s3: S3Client,
  manifestKey: string,
  bucket = REPORTS,
): Promise<Record<string, string>[]> {
  const { manifest, files } = await read(s3, manifestKey, bucket)
  const names: string[] = manifest.fileSchema.split(', ')
  const lines = files.flatMap((file): string[][] => parse(gunzipSync(file)))
  return lines.map((line) => {
    const row = Object.fromEntries(names.map((name, i) => [name, line[i] ?? '']))
    return { ...row, Key: decodeURIComponent(row.Key ?? '') }
  })
}
