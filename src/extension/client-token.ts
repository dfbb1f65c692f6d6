import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { invalidArgument } from './names.js'

/** `x-amz-client-token`, or `Idempotency-Key` of those who know that: 1 to 64 printable ASCII characters. Throws InvalidArgument. */
export function readClientToken(headers: IncomingHttpHeaders): string | undefined {
  const given = ['x-amz-client-token', 'idempotency-key'].flatMap((name) => {
    const value = headers[name]
    return value === undefined ? [] : [{ name, value: String(value) }]
  })
  for (const { name, value } of given) {
    if (!/^[ -~]{1,64}$/.test(value)) throw invalidArgument(name, 'must be 1 to 64 printable ASCII characters', value)
  }
  const [first, second] = given
  if (first && second && first.value !== second.value) {
    throw invalidArgument(second.name, `differs from ${first.name}: send one of them`)
  }
  return first?.value
}

/** Hex SHA-256 of JSON values, whatever the order of their members. */
export function hashOf(...values: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(values, sorted)).digest('hex')
}

function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}
