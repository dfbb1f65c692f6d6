import type { HeaderList } from '../../http/errors.js'
import { owns } from '../access.js'
import type { ReadContext } from '../context.js'
import { GatewayError } from '../errors.js'
import type { GatewayExchange, ReadExchange } from '../exchange.js'
import type { BucketRow } from '../store/buckets.js'
import { type DeclaredLock, type LockRow, lockModes, type Retention } from '../store/object-locks.js'
import type { ObjectRow } from '../store/object-row.js'
import type { VersionRef } from '../store/version-reads.js'
import { shownId } from '../store/versions.js'

/**
 * The version that the client asks for, with x-cloud-version-id or, by the generation of its body, with
 * x-cloud-of-generation.
 */
export function readVersionRef(exchange: ReadExchange): VersionRef | undefined {
  const { request, context } = exchange
  const id = request.headers[`${context.names.header}version-id`]
  if (typeof id === 'string') return { id }
  const generation = readGeneration(exchange)
  return generation === undefined ? undefined : { generation }
}

/** The generation of the version that the client asks for. */
export function readGeneration({ request, context }: ReadExchange): string | undefined {
  return request.headers[`${context.names.header}of-generation`]?.toString()
}

/** What tells the version of an object in a bucket that has versions, and its lock. */
export function versionHeaders(
  { names }: Pick<ReadContext, 'names'>,
  row: ObjectRow,
  lock: LockRow | undefined,
): HeaderList {
  const list: HeaderList = [`${names.header}version-id`, shownId(row)]
  if (lock === undefined) return list
  if (lock.mode !== null) list.push(`${names.header}lock-mode`, lock.mode)
  if (lock.ends !== null) list.push(`${names.header}retain-until`, String(lock.ends))
  list.push(`${names.header}legal-hold`, lock.hold === 0 ? 'OFF' : 'ON')
  return list
}

/**
 * The lock that the owner of the bucket gives to the object in its upload. Throws GatewayError InvalidHeader,
 * NotPermitted or NoLockConfiguration.
 */
export function readLock(
  { request: { headers }, identity, context: { names } }: GatewayExchange,
  bucket: BucketRow,
): DeclaredLock | undefined {
  const read = (name: string) => headers[`${names.header}${name}`]?.toString()
  const mode = read('lock-mode')
  const until = read('retain-until')
  const hold = read('legal-hold')
  if (mode === undefined && until === undefined && hold === undefined) return undefined
  if (!owns(identity, bucket)) throw new GatewayError('NotPermitted')
  const refuse = (name: string): never => {
    throw new GatewayError('InvalidHeader', { value: `${names.header}${name}` })
  }
  if ((mode === undefined) !== (until === undefined)) refuse(mode === undefined ? 'lock-mode' : 'retain-until')
  if (mode !== undefined && !(lockModes as readonly string[]).includes(mode)) refuse('lock-mode')
  if (until !== undefined && !isTime(Number(until))) refuse('retain-until')
  if (hold !== undefined && hold !== 'ON' && hold !== 'OFF') refuse('legal-hold')
  if (bucket.lockRule === null) throw new GatewayError('NoLockConfiguration')
  const retention = mode === undefined ? undefined : { mode: mode as Retention['mode'], until: Number(until) }
  return { retention, hold: hold === 'ON' }
}

/** True for ms since 1970 that a date can have. */
export function isTime(ms: number): boolean {
  return Number.isSafeInteger(ms) && ms > 0 && !Number.isNaN(new Date(ms).getTime())
}
