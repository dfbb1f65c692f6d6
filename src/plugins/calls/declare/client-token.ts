import { createHash } from 'node:crypto'
import type { Proof } from '../../../auth/caller.js'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { S3Request } from '../../../request/s3-request.js'
import { invalidArgument } from '../codec/names.js'

const NAMES = ['x-amz-client-token', 'idempotency-key'] as const

/**
 * Reads `x-amz-client-token`, from a header or the query, or the header `Idempotency-Key`: 1 to 64 printable ASCII
 * characters. A token decides whether a request is a new one, so it must be signed: otherwise an observer of a request
 * could replay it as a new one.
 * @throws InvalidArgument; AccessDenied for a header that the signature does not cover
 */
export function readClientToken(
  { headers, query }: Pick<S3Request, 'headers' | 'query'>,
  proof: Proof | undefined,
): string | undefined {
  const given = NAMES.flatMap((name) => {
    const value = headers[name]
    return value === undefined ? [] : [{ name, value: String(value) }]
  })
  const unsigned = given.find(({ name }) => !proof?.headers.includes(name))
  if (unsigned) {
    throw new S3Error('AccessDenied', {
      message: `The header ${unsigned.name} is not signed. Name it in SignedHeaders, or leave it out.`,
      fields: { HeadersNotSigned: unsigned.name },
    })
  }
  const tokens = [...given, ...ofQuery(query)]
  for (const { name, value } of tokens) {
    if (!/^[ -~]{1,64}$/.test(value)) throw invalidArgument(name, 'must be 1 to 64 printable ASCII characters', value)
  }
  const [first] = tokens
  const other = tokens.find(({ value }) => value !== first?.value)
  if (first && other) throw invalidArgument(other.name, `differs from ${first.name}: send one of them`)
  return first?.value
}

function ofQuery({ entries }: S3Request['query']) {
  return entries.flatMap(([name, value]) => (name.toLowerCase() === NAMES[0] ? [{ name, value }] : []))
}

/** Hex SHA-256 of JSON values, independent of the order of their members. */
export function hashOf(...values: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(values, sorted)).digest('hex')
}

function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}
