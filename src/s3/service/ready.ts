import { constants } from 'node:fs'
import { access, statfs } from 'node:fs/promises'
import { withinDeadline } from '../../common/deadline.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { ToldAlready } from '../../common/errors/told-already.js'
import type { Context } from '../../server/context.js'

/** Timeout of each check, ms. Load balancers wait a few seconds. */
const PATIENCE_MS = 3_000
/** Free bytes of the disk of the data folder below which it is a problem. */
const LOW_BYTES = 512 * 1024 * 1024

type Checked = Pick<Context, 'gateway' | 'state'> & {
  readonly server: Pick<Context['server'], 'data'>
  readonly limits: Pick<Context['limits'], 'minFreeBytes'>
}

/** The result of one check. */
export interface Check {
  readonly name: 'gateway' | 'state' | 'data' | 'disk'
  readonly ms: number
  /** S3Error ServiceUnavailable. */
  readonly failure?: S3Error
}

/**
 * Checks within a bounded time that requests can be served: the gateway accepts the log-in, the store of records
 * answers a look-up, the data folder can be written, and its disk has the room that the options demand.
 */
export function checkAll({ gateway, state, server: { data }, limits: { minFreeBytes } }: Checked): Promise<Check[]> {
  return Promise.all([
    check('gateway', () => gateway.ready(), 'The object gateway'),
    check('state', () => state.records('probe').get('probe'), "The store of the server's own records"),
    ...(data === undefined ? [] : [check('data', () => requireFolder(data), 'The disk of the data folder')]),
    ...(data === undefined || minFreeBytes === 0
      ? []
      : [check('disk', () => requireRoom(data, minFreeBytes), 'The disk of the data folder')]),
  ])
}

/** Throws S3Error ServiceUnavailable with the reason if requests cannot be served. */
export async function requireReady(context: Checked): Promise<void> {
  const failed = (await checkAll(context)).find(({ failure }) => failure)
  if (failed?.failure) throw failed.failure
}

/** Free bytes for this process on the disk of the data folder; undefined without one, or where they are not known. */
export async function freeBytes(data: string | undefined): Promise<number | undefined> {
  if (data === undefined) return undefined
  try {
    const { bavail, bsize } = await withinDeadline(statfs(data), PATIENCE_MS)
    return bavail * bsize
  } catch {
    return undefined
  }
}

/** Why some requests are refused or soon will be, although most are served; undefined for no problem. */
export async function problemOf({ state, server }: Checked): Promise<string | undefined> {
  const free = await freeBytes(server.data)
  const low =
    free !== undefined && free < LOW_BYTES
      ? `The disk of the data folder has ${Math.floor(free / 1024 ** 2)} MiB left: uploads fail when it is full.`
      : undefined
  return state.problem() ?? low
}

async function check(name: Check['name'], work: () => Promise<unknown>, subject: string): Promise<Check> {
  const began = performance.now()
  const ms = () => performance.now() - began
  try {
    await bounded(work, `${subject} did not answer in time.`)
    return { name, ms: ms() }
  } catch (error) {
    const failure = error instanceof S3Error ? error : new S3Error('ServiceUnavailable', { cause: error })
    return { name, ms: ms(), failure }
  }
}

async function bounded(work: () => Promise<unknown>, message: string): Promise<void> {
  const late = () => new S3Error('ServiceUnavailable', { message, cause: new ToldAlready(message) })
  try {
    await withinDeadline(work(), PATIENCE_MS, late)
  } catch (error) {
    // The gateway refuses the log-in of this server, not the client of this call.
    if (error instanceof S3Error && error.status < 500) throw new S3Error('ServiceUnavailable', error)
    throw error
  }
}

async function requireRoom(data: string, least: number): Promise<void> {
  const free = await freeBytes(data)
  if (free !== undefined && free >= least) return
  const room = free === undefined ? 'an unknown number of' : Math.floor(free / 1024 ** 2)
  throw new S3Error('ServiceUnavailable', {
    message: `The disk of the data folder has ${room} MiB left, less than --min-free-bytes.`,
  })
}

/** The message names no path: every client can read it. */
async function requireFolder(data: string): Promise<void> {
  await access(data, constants.W_OK).catch((cause) => {
    throw new S3Error('ServiceUnavailable', { message: 'The server cannot write to its data folder.', cause })
  })
}
