import { type EndedRequest, z } from 'dealgate/plugin'

/** Characters of texts that clients choose. A key has at most 1,024 bytes. */
const MAX_KEY = 1024
const MAX_TEXT = 300
const MAX_NAME = 128

const text = z.string()
const optional = text.optional()

/** What is kept of a request, and what another process sends of it. */
export const entrySchema = z.object({
  ...{ requestId: text, operation: text, plugin: optional, method: text, bucket: optional, key: optional },
  ...{ status: z.number(), error: optional, bytesIn: z.number(), bytesOut: z.number(), ms: z.number() },
  ...{ cut: z.boolean(), remote: text, userAgent: optional },
  signer: z.object({ accessKeyId: text, account: text, session: optional }).optional(),
  refusal: z.object({ action: optional, reason: text, told: z.boolean() }).optional(),
})

export type Entry = z.infer<typeof entrySchema>

/** Member by member: a request has a context and a body, and a later release may describe more of it. */
export function entryOf(ended: EndedRequest): Entry {
  const { requestId, operation, plugin, status, error, bytesIn, bytesOut, ms, cut, remote, signer, refusal } = ended
  return {
    ...{ requestId, operation, plugin, status, error, bytesIn, bytesOut, ms, cut, remote },
    method: ended.method.slice(0, MAX_NAME),
    bucket: ended.bucket?.slice(0, MAX_NAME),
    key: ended.key?.slice(0, MAX_KEY),
    userAgent: ended.userAgent?.slice(0, MAX_TEXT),
    signer: signer && {
      accessKeyId: signer.accessKeyId.slice(0, MAX_NAME),
      account: signer.account,
      session: signer.session?.slice(0, MAX_NAME),
    },
    refusal: refusal && { action: refusal.action, reason: refusal.reason.slice(0, MAX_TEXT), told: refusal.told },
  }
}

/** What balancers ask every few seconds, and what a browser asks before each request, say nothing. */
const ASIDE = ['Live', 'Ready', 'PreflightConsole']

/** What a reader of the list asks itself says nothing, either. */
export function isKept({ operation, plugin, status }: EndedRequest): boolean {
  return !ASIDE.includes(operation) && (status >= 400 || plugin !== 'requests')
}

/** For `caller`: requests without a valid signature. */
const UNSIGNED = '-'

export const filterSchema = z.object({
  /** `403`, or `4xx`. */
  status: optional,
  ...{ operation: optional, bucket: optional, prefix: optional },
  /** An access key id, the canonical id of an account, or `-`. */
  caller: optional,
})

type Filter = z.infer<typeof filterSchema>

export function meets(filter: Filter, { status, operation, bucket, key, signer }: Entry): boolean {
  const { caller } = filter
  if (filter.status !== undefined && !String(status).startsWith(filter.status.replace('xx', ''))) return false
  if (filter.operation !== undefined && operation.toLowerCase() !== filter.operation.toLowerCase()) return false
  if (filter.bucket !== undefined && bucket !== filter.bucket) return false
  if (filter.prefix !== undefined && !key?.startsWith(filter.prefix)) return false
  if (caller === undefined) return true
  return caller === UNSIGNED ? !signer : signer?.accessKeyId === caller || signer?.account === caller
}
