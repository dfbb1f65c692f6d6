import { stat } from 'node:fs/promises'
import { readIfExists } from '../../common/files/private-file.js'
import { createLogger, printable } from '../../common/log.js'
import type { Gateway, GatewayObject, ListEntry } from '../../src/api/gateway.js'
import { openHeader } from '../../src/objects/encryption/age-header.js'
import { withLostLabel } from '../../src/objects/encryption/lost-label.js'
import { describeError, Failure } from '../command.js'
import type { Config } from '../config/config.js'
import { keyFileOf, readKeys } from '../encryption/key-commands.js'
import { obtainGateway, poolOf } from '../serve/gateway.js'
import { isRunning } from './gateway-mistakes.js'
import type { Finding } from './running-server.js'

/**
 * Most buckets and entries of each that are looked at, and most objects of a bucket whose headers are opened; where the
 * listing does not tell, most objects whose first bytes are looked at.
 */
const MAX_BUCKETS = 20
const MAX_ENTRIES = 1000
const MAX_OPENED = 3
const MAX_SEEN = 10

/**
 * The file of the keys of encrypted objects, and whether it opens some of them. Undefined for a server that encrypts
 * nothing.
 */
export async function checkEncryptionKeys(config: Config): Promise<Finding | undefined> {
  const file = keyFileOf(config)
  const exists = readIfExists(file) !== undefined
  if (!exists && config.encryptionKeys !== undefined)
    throw new Failure(`there is no ${file}. Restore it: without it, the encrypted objects cannot be read.`)
  const identities = exists ? (await readKeys(file)).identities : []
  if (exists && process.platform !== 'win32' && ((await stat(file)).mode & 0o077) !== 0)
    throw new Failure(`others can read ${file}. Run: chmod 600 ${file}`)
  const { opened, lost, unlabelled, unseen } = await sample(config, identities)
  if (lost.length > 0) {
    const shown = lost.map(printable).join(', ')
    throw new Failure(
      `${exists ? `no key of ${file} opens` : `there is no ${file}, and without its keys no server can read`} ${lost.length} of the ${lost.length + opened} encrypted objects that were looked at: ${shown}. ` +
        'Restore the file of keys from its copy, or add its keys with: dealgate encryption add FILE. If all copies are lost, so are these objects.',
    )
  }
  const warnings = [
    ...(unseen === undefined ? [] : [`the encrypted objects could not be looked at: ${unseen}`]),
    ...(unlabelled.length === 0 ? [] : [lostLabels(unlabelled)]),
  ]
  if (!exists) return warnings.length === 0 ? undefined : { text: `there is no ${file}`, warnings }
  const looked = opened === 0 ? '' : `; they open the ${opened} encrypted objects that were looked at`
  return {
    text: `${identities.length} in ${file}${looked}. Keep a copy in a safe place, apart from backups: without it, the encrypted objects are lost`,
    warnings,
  }
}

function lostLabels(unlabelled: readonly string[]): string {
  return (
    `objects at the gateway have lost the label by which they are known as encrypted: ${unlabelled.map(printable).join(', ')}. ` +
    'dealgate opens them by their bytes, and other clients of the gateway see them as plain. ' +
    'Label them again with: dealgate encryption rewrap BUCKET. The column x-EncryptionLabel of an inventory finds all of them.'
  )
}

interface Sample {
  /** Objects that a key opens. */
  readonly opened: number
  /** `bucket/key` of those that none opens. */
  readonly lost: readonly string[]
  /** `bucket/key` of those that their bytes alone show to be encrypted. */
  readonly unlabelled: readonly string[]
  /** Why some were not looked at. */
  readonly unseen?: string
}

/** A gateway in a running dealgate is not looked at. */
async function sample(config: Config, identities: readonly string[]): Promise<Sample> {
  const nothing = { opened: 0, lost: [], unlabelled: [] }
  if (config.gatewayUrl === undefined && (await isRunning(config))) return nothing
  const log = createLogger({ level: 'silent' })
  // Other checks tell what is wrong with it.
  const gateway = await obtainGateway(config, log).catch(() => undefined)
  if (!gateway) return nothing
  const pool = poolOf(config, gateway, log)
  try {
    return await sampleOf(pool.for(gateway.account), identities, config.encryptionCommand !== undefined)
  } catch (error) {
    return { ...nothing, unseen: describeError(error) }
  } finally {
    await pool.close()
    await gateway.stop()
  }
}

async function sampleOf(gateway: Gateway, identities: readonly string[], hasCommand: boolean): Promise<Sample> {
  let opened = 0
  const lost: string[] = []
  const unlabelled: string[] = []
  for (const { name: bucket } of (await gateway.listBuckets()).slice(0, MAX_BUCKETS)) {
    const query = { prefix: '', delimiter: '', after: '', limit: MAX_ENTRIES }
    const { entries } = await gateway.list(bucket, query)
    for (const key of someOf(entries)) {
      const stated = await gateway.stat(bucket, key)
      const object = stated && (await seen(gateway, bucket, stated))
      if (object?.encrypted?.unlabelled) unlabelled.push(`${bucket}/${key}`)
      const { algorithm, keyId, header } = object?.encrypted ?? {}
      // A key of a client is nowhere, and a program that holds named keys is not asked.
      if (!object || header === undefined || algorithm === 'SSE-C' || (keyId !== undefined && hasCommand)) continue
      if (await opens(gateway, bucket, object, header, identities)) opened++
      else lost.push(`${bucket}/${key}`)
    }
  }
  return { opened, lost, unlabelled }
}

/** The object as its label or its bytes show it. */
async function seen(gateway: Gateway, bucket: string, object: GatewayObject): Promise<GatewayObject> {
  if (object.encrypted || object.cold || (await gateway.features()).objectRecords) return object
  const download = await gateway.download(bucket, object.key)
  const found = await withLostLabel(gateway, bucket, download, 'AES256')
  found.download.discard()
  return found.object
}

/** Some of the objects that the listing tells to be encrypted, and of the others. */
function someOf(entries: readonly ListEntry[]): readonly string[] {
  const objects = entries.flatMap((entry) => (entry.kind === 'object' ? [entry.object] : []))
  const told = (encrypted: boolean) => objects.filter((one) => (one.encrypted !== undefined) === encrypted)
  return [...spread(told(true), MAX_OPENED), ...spread(told(false), MAX_SEEN)].map(({ key }) => key)
}

/** At most `count` of them, from the first to the last. */
function spread<T>(all: readonly T[], count: number): readonly T[] {
  if (all.length <= count) return all
  const places = Array.from({ length: count }, (_, i) => Math.round((i * (all.length - 1)) / (count - 1)))
  return places.flatMap((place) => all[place] ?? [])
}

async function opens(
  gateway: Gateway,
  bucket: string,
  object: GatewayObject,
  header: number,
  identities: readonly string[],
): Promise<boolean> {
  const download = await gateway.download(bucket, object.key, { first: 0, last: header - 1 })
  const parts: Buffer[] = []
  await download.consume((chunk) => void parts.push(chunk))
  const fileKey = await openHeader(Buffer.concat(parts), identities)
  if (typeof fileKey !== 'string') fileKey.fill(0)
  return fileKey !== 'no key'
}
