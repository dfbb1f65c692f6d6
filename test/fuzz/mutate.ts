import type { AnyOperation } from '../../src/api/operation.js'
import type { Random } from './random.js'
import { buckets, documents, headerNames, headerValues, keys, pieces, queryNames, values } from './words.js'

/** A request that is still to be signed. */
export interface Draft {
  readonly method: string
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

const METHODS = ['GET', 'HEAD', 'PUT', 'POST', 'DELETE', 'OPTIONS']

/** A request for one of the operations, changed here and there. The same for the same numbers. */
export function draft(random: Random, operations: readonly AnyOperation[]): Draft {
  const operation = random.of(operations)
  const { on } = operation
  const method = random.chance(0.9) ? on.method : random.of(METHODS)
  const headers: Record<string, string> = on.header === undefined ? {} : { [on.header]: '/fuzz/key' }
  // What becomes a job is not waited for.
  if (operation.call && method === 'POST') headers.prefer = 'wait=0'
  for (let count = random.chance(0.5) ? 0 : random.below(4); count > 0; count--)
    headers[random.of(headerNames)] = random.of(headerValues)
  return { method, target: target(random, operation), headers, body: body(random, method, operation.name) }
}

function target(random: Random, { on }: AnyOperation): string {
  const path =
    on.resource === 'service'
      ? (on.path ?? '/').replace(/\{[^}]*\}/g, () => random.of(keys))
      : on.resource === 'bucket'
        ? `/${random.of(buckets)}`
        : `/${random.of(buckets)}/${random.of(keys)}`
  const named = (on.query ?? []).map((one) => (one.includes('=') ? one : `${one}=${value(random)}`))
  const asked = (on.params ?? []).filter(() => random.chance(0.3)).map((one) => `${one}=${value(random)}`)
  const more = random.chance(0.25) ? [`${random.of(queryNames)}=${value(random)}`] : []
  const pairs = [...named, ...asked, ...more].filter(() => random.chance(0.97))
  return `${path}${pairs.length > 0 ? '?' : ''}${pairs.join('&')}`
}

function value(random: Random): string {
  const text = random.of(values)
  return text.includes('%') ? text : encodeURIComponent(text)
}

function body(random: Random, method: string, operation: string): Buffer {
  if (method !== 'PUT' && method !== 'POST') return Buffer.alloc(0)
  const fitting = random.chance(0.6) ? documents.filter((one) => fits(one, operation)) : []
  let text = random.of(fitting.length > 0 ? fitting : documents)
  for (let count = random.chance(0.4) ? 0 : random.below(4); count > 0; count--) text = change(random, text)
  const bytes = Buffer.from(text)
  if (bytes.length > 0 && random.chance(0.1)) bytes[random.below(bytes.length)] = random.below(256)
  return bytes
}

/** Told by the name of the root, for the most part. */
function fits(document: string, operation: string): boolean {
  const root = /^<(\w+)>/
    .exec(document)?.[1]
    ?.replace(/(Configuration|Request)$/, '')
    .toLowerCase()
  return root !== undefined && operation.toLowerCase().includes(root)
}

function change(random: Random, text: string): string {
  const at = random.below(text.length + 1)
  const end = Math.min(text.length, at + random.below(20))
  switch (random.below(4)) {
    case 0:
      return text.slice(0, at) + random.of(pieces) + text.slice(at)
    case 1:
      return text.slice(0, at) + text.slice(end)
    case 2:
      return text.slice(0, end) + text.slice(at)
    default:
      return text.slice(0, at) + random.of(values) + text.slice(end)
  }
}
