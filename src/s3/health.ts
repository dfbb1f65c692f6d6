import { constants } from 'node:fs'
import { access, statfs } from 'node:fs/promises'
import { z } from 'zod'
import { RESERVE_BYTES } from '../../common/disk-reserve.js'
import { ReportedAlready, S3Error } from '../../common/errors/s3-error.js'
import { withinDeadline } from '../../common/time.js'
import type { Context } from '../api/context.js'
import { defineCall } from '../plugins/calls/define-call.js'

/** The health calls are public, because load balancers have no key pair. */
const shared = {
  source: 'docs/operations.md#health',
  access: 'public',
  action: 'none',
  ownRules: true,
  presignable: true,
} as const

/** Answers as long as the process does. */
export const live = defineCall({
  ...shared,
  name: 'Live',
  summary: 'Answers as long as the process does.',
  on: { method: 'GET', resource: 'service', path: '/-/live' },
  result: z.object({ status: z.literal('live') }),
  answer: async () => ({ status: 'live' as const }),
})

/**
 * Answers 200 only if the gateway accepts the log-in and the store of records is readable, so that a load balancer can
 * route requests elsewhere otherwise.
 */
export const ready = defineCall({
  ...shared,
  name: 'Ready',
  summary:
    'Answers 200 while the gateway accepts the log-in, the store of records answers, and the data folder can be written and has room, else 503.',
  on: { method: 'GET', resource: 'service', path: '/-/ready' },
  result: z.object({
    status: z.literal('ready'),
    writes: z
      .literal(false)
      .optional()
      .describe('False while the disk is full: uploads fail, reads and removals work. Absent otherwise.'),
    problem: z.string().optional().describe('Reason why some requests are refused, although most are served.'),
  }),
  async answer(_, context) {
    if (context.server.closing()) throw new S3Error('ServiceUnavailable', { message: 'The server is shutting down.' })
    const problem = await problemOf(context, await requireReady(context))
    const writes = isFull(await freeBytes(context.server.data)) ? { writes: false as const } : {}
    return { status: 'ready' as const, ...writes, ...(problem !== undefined && { problem }) }
  },
})

/** The checks of `/-/ready` one by one, for callers with a key pair: it answers 200 also if one fails. */
export const getHealth = defineCall({
  name: 'GetHealth',
  source: 'docs/operations.md#health',
  summary:
    'Tells what works and what does not, with reasons: the gateway, the store of records, the data folder, its disk.',
  access: 'signed',
  on: { method: 'GET', resource: 'service', path: '/-/health' },
  ownRules: true,
  // Policies know the call by this name.
  action: 'self:GetHealth',
  result: z.object({
    Status: z.enum(['Ready', 'NotReady', 'Closing']),
    Problem: z.string().optional().describe('Reason why some requests are refused, or soon will be.'),
    Checks: z
      .array(
        z.object({
          Name: z.enum(['gateway', 'state', 'data', 'disk']),
          Works: z.boolean(),
          Milliseconds: z.int(),
          Reason: z.string().optional(),
        }),
      )
      .meta({ element: 'Check' }),
    FreeBytes: z.int().optional().describe('Free bytes on the disk of the data folder.'),
    UptimeSeconds: z.int(),
    Pid: z.int().describe('Id of the process that answers.'),
    Worker: z.int().optional().describe('Its number among the workers, from 1; absent without --workers.'),
  }),
  async answer(_, context) {
    const [checks, free] = await Promise.all([checkAll(context), freeBytes(context.server.data)])
    const problem = await problemOf(context, checks)
    const works = checks.every(({ failure }) => !failure)
    return {
      Status: context.server.closing() ? ('Closing' as const) : works ? ('Ready' as const) : ('NotReady' as const),
      ...(problem !== undefined && { Problem: problem }),
      Checks: checks.map(({ name, ms, failure }) => ({
        Name: name,
        Works: !failure,
        Milliseconds: Math.round(ms),
        ...(failure && { Reason: failure.message }),
      })),
      ...(free !== undefined && { FreeBytes: free }),
      UptimeSeconds: Math.round(process.uptime()),
      Pid: process.pid,
      ...(context.server.worker !== undefined && { Worker: context.server.worker }),
    }
  },
})

/** Timeout of each check, ms. Load balancers wait a few seconds. */
const PATIENCE_MS = 3_000

/** Free bytes of the disk of the data folder below which it is a problem. */
const LOW_BYTES = 512 * 1024 * 1024

type Checked = Pick<Context, 'gateway' | 'state'> & {
  readonly server: Pick<Context['server'], 'data'>
  readonly limits: Pick<Context['limits'], 'minFreeBytes'>
}

/** The result of one check. */
interface Check {
  readonly name: 'gateway' | 'state' | 'data' | 'disk'
  readonly ms: number
  /** S3Error ServiceUnavailable. */
  readonly failure?: S3Error
  /** Reason why some requests are refused, although it works. */
  readonly problem?: string
}

/**
 * Checks within a bounded time that requests can be served: the gateway accepts the log-in, the store of records
 * answers a look-up, the data folder can be written, and its disk has the room that the options demand.
 */
function checkAll({ gateway, state, server: { data }, limits: { minFreeBytes } }: Checked): Promise<Check[]> {
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
async function requireReady(context: Checked): Promise<readonly Check[]> {
  const checks = await checkAll(context)
  const failed = checks.find(({ failure }) => failure)
  if (failed?.failure) throw notReady(failed.failure)
  return checks
}

/** Load balancers ask every second or so: each gets a line with the reason, without the stack of a connection. */
function notReady(failure: S3Error): S3Error {
  if (failure.cause instanceof ReportedAlready) return failure
  const { message, headers, cause } = failure
  const because = cause instanceof Error ? messageOf(cause) : undefined
  const report = new ReportedAlready(message, (log, facts) =>
    log.error({ ...facts, reason: message, because }, NOT_READY),
  )
  return new S3Error('ServiceUnavailable', { message, headers: { ...headers }, cause: report })
}

const NOT_READY = 'the server is not ready: requests are refused until it is'

/** A connection to a name with several addresses fails with the errors of all of them, and no message. */
function messageOf(cause: Error): string {
  return cause instanceof AggregateError
    ? cause.errors.map((error) => (error as Error).message).join('; ')
    : cause.message
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
async function problemOf({ state, server }: Checked, checks: readonly Check[]): Promise<string | undefined> {
  const free = await freeBytes(server.data)
  return state.problem() ?? problemOfRoom(free) ?? checks.find(({ problem }) => problem !== undefined)?.problem
}

function problemOfRoom(free: number | undefined): string | undefined {
  if (isFull(free)) return 'The disk of the data folder is full: uploads fail, reads and removals work.'
  if (free === undefined || free >= LOW_BYTES) return undefined
  return `The disk of the data folder has ${Math.floor(free / 1024 ** 2)} MiB left: uploads fail when it is full.`
}

/** True when there is hardly room for more than removals. */
function isFull(free: number | undefined): boolean {
  return free !== undefined && free < RESERVE_BYTES
}

/** @param work resolves to the reason why some requests are refused, if to a text */
async function check(name: Check['name'], work: () => Promise<unknown>, subject: string): Promise<Check> {
  const began = performance.now()
  const ms = () => performance.now() - began
  try {
    const found = await bounded(work, `${subject} did not answer in time.`)
    return { name, ms: ms(), ...(typeof found === 'string' && { problem: found }) }
  } catch (error) {
    const failure = error instanceof S3Error ? error : new S3Error('ServiceUnavailable', { cause: error })
    return { name, ms: ms(), failure }
  }
}

async function bounded<T>(work: () => Promise<T>, message: string): Promise<T> {
  const late = () => new S3Error('ServiceUnavailable', { message, cause: new ReportedAlready(message) })
  try {
    return await withinDeadline(work(), PATIENCE_MS, late)
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
