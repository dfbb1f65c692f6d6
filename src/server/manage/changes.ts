import { z } from 'zod'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { Caller } from '../../api/identity.js'
import type { Records, State } from '../../api/state.js'
import { PageOf } from '../../plugins/calls/call.js'
import { defineCall } from '../../plugins/calls/define-call.js'
import type { Selected } from '../../plugins/table.js'
import { requireOwnAccount } from './operators.js'

/** Most changes of a kind that are kept; the oldest make room. */
const MAX_CHANGES = 5000

const kinds = ['server', 'buckets', 'accounts'] as const

/**
 * Changes of keys, accounts and the configuration, which only the owner's account can make; those of buckets; and
 * those that other accounts make of their keys at the gateway. They are kept apart: a tenant who changes its bucket or
 * its keys all the time must not remove the traces of the owner.
 */
type Kind = (typeof kinds)[number]

/** What is kept of an entry of the audit log. */
export interface Change {
  readonly time: string
  /** `PutBucketPolicy`, or `job <kind>` for a job that was created. */
  readonly action: string
  /** Access key id; absent for what the server does by itself. */
  readonly accessKeyId?: string | undefined
  /** Name and role of the session of temporary credentials. */
  readonly session?: string | undefined
  readonly requestId?: string | undefined
  readonly remote?: string | undefined
  readonly bucket?: string | undefined
  readonly key?: string | undefined
  /** Path of what a job is about, or what a command has changed. */
  readonly resource?: string | undefined
  /** Options that a reload has changed, or what a key pair may do: `read:photos`. */
  readonly changed?: readonly string[] | undefined
}

interface ChangeRecord extends Change {
  readonly number: number
}

/** Plugins whose calls change what the whole server has. */
const OF_SERVER = new Set(['keys', 'accounts', 'server', 'gateway'])

/** How the names of operations begin that change a bucket or its settings. */
const CHANGES = /^(?:CreateBucket$|Put|Set|Delete)/

/** What an operation changes besides objects and orders; undefined for none of these. */
export function kindOf({ plugin, operation }: Selected, caller: Caller | undefined): Kind | undefined {
  if (OF_SERVER.has(plugin)) return caller?.identity.account === undefined ? 'server' : 'accounts'
  if (operation.call?.job !== undefined || operation.on.resource !== 'bucket') return undefined
  return CHANGES.test(operation.name) ? 'buckets' : undefined
}

/** The last changes, with who made them. Every process on the state writes to the same records, and never over one. */
export class Changes {
  readonly #numbers: Records<{ readonly last: number }>
  readonly #records: Records<ChangeRecord>

  constructor(state: Pick<State, 'records'>) {
    this.#numbers = state.records('change-numbers')
    this.#records = state.records('changes')
  }

  /** Durable once it resolves. Throws S3Error ServiceUnavailable. */
  async add(kind: Kind, entry: Change): Promise<void> {
    const numbered = await this.#numbers.change(kind, (present) => ({ last: (present?.last ?? 0) + 1 }))
    const number = numbered?.last ?? 1
    await this.#records.set(placeOf(kind, number), { ...entry, number })
  }

  /**
   * Changes, the newest first.
   * @param from number of the first of the page
   */
  async page(kind: Kind, limit: number, from: number | undefined): Promise<PageOf<ChangeRecord>> {
    const last = (await this.#numbers.get(kind))?.last ?? 0
    const oldest = Math.max(1, last - MAX_CHANGES + 1)
    const found: ChangeRecord[] = []
    let number = Math.min(from ?? last, last)
    for (; number >= oldest && found.length < limit; number--) {
      const record = await this.#records.get(placeOf(kind, number))
      // A process that died meanwhile has left a number without a record.
      if (record?.number === number) found.push(record)
    }
    return new PageOf(found, number >= oldest ? String(number) : undefined)
  }
}

/** The place of a change, which a later one takes. */
function placeOf(kind: Kind, number: number): string {
  return `${kind}-${number % MAX_CHANGES}`
}

/** @param changes called when a client asks */
export function listChanges(changes: () => Changes) {
  return defineCall({
    name: 'ListChanges',
    source: 'docs/observability.md#changes',
    summary: 'Lists who changed keys, accounts, the configuration or settings of buckets, the newest change first.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/changes/v1' },
    query: z.object({
      of: z
        .enum(kinds)
        .optional()
        .describe(
          '`server`: keys, accounts and the configuration (default); `buckets`: buckets and their settings; `accounts`: what other accounts than that of the server have changed of their own keys.',
        ),
    }),
    pages: 'Changes',
    result: z.object({
      Changes: z
        .array(
          z.object({
            Time: z.iso.datetime(),
            Action: z.string().describe('Name of the call.'),
            AccessKeyId: z.string().optional().describe('Who made the change.'),
            Session: z.string().optional().describe('Name of the session, for temporary credentials.'),
            Address: z.string().optional().describe('Address of the client.'),
            RequestId: z.string().optional(),
            Resource: z.string().optional().describe('What was changed: a key pair, an account, a bucket.'),
            Details: z.string().optional(),
          }),
        )
        .meta({ element: 'Change' }),
    }),
    async answer({ query, page }, { caller }) {
      requireOwnAccount(caller)
      const { items, next } = await changes().page(query.of ?? 'server', page.limit, startOf(page.from))
      return { Changes: new PageOf(items.map(shown), next) }
    },
  })
}

function startOf(from: string | undefined): number | undefined {
  if (from === undefined) return undefined
  if (/^[1-9]\d{0,14}$/.test(from)) return Number(from)
  throw new S3Error('InvalidArgument', { fields: { ArgumentName: 'continuation-token' } })
}

function shown({
  time,
  action,
  accessKeyId,
  session,
  remote,
  requestId,
  bucket,
  key,
  resource,
  changed,
}: ChangeRecord) {
  const what = resource ?? (bucket === undefined ? undefined : key === undefined ? bucket : `${bucket}/${key}`)
  return {
    Time: time,
    Action: action,
    ...(accessKeyId !== undefined && { AccessKeyId: accessKeyId }),
    ...(session !== undefined && { Session: session }),
    ...(remote !== undefined && { Address: remote }),
    ...(requestId !== undefined && { RequestId: requestId }),
    ...(what !== undefined && { Resource: what }),
    ...(changed && changed.length > 0 && { Details: changed.join(' ') }),
  }
}
