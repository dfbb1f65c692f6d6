import type { PolicyEntry } from '../gateway/gateway.js'
import { LIST_ACTION, READ_ACTIONS, UPLOADS_ACTION, WRITE_ACTIONS } from './actions.js'

interface OutStatement {
  readonly Effect: 'Allow'
  readonly Principal: { readonly AWS: readonly string[] }
  readonly Action: readonly string[]
  readonly Resource: readonly string[]
  readonly Condition?: object
}

/** A policy document that grants what these rules of the gateway grant. `entries` is not empty. */
export function fromEntries(entries: readonly PolicyEntry[], bucket: string): string {
  const readable = entries.filter(({ policy }) => policy !== 'writeonly').map(({ prefix }) => prefix)
  const writable = entries.filter(({ policy }) => policy !== 'readonly').map(({ prefix }) => prefix)
  const arn = `arn:aws:s3:::${bucket}`
  const below = (prefixes: readonly string[]) => prefixes.map((prefix) => `${arn}/${prefix}*`)
  const bound = readable.filter((prefix) => prefix !== '')
  const statements = [
    readable.includes('') ? allow([LIST_ACTION], [arn]) : undefined,
    bound.length > 0
      ? { ...allow([LIST_ACTION], [arn]), Condition: { StringEquals: { 's3:prefix': bound } } }
      : undefined,
    readable.length > 0 ? allow(READ_ACTIONS, below(readable)) : undefined,
    writable.length > 0 ? allow([UPLOADS_ACTION], [arn]) : undefined,
    writable.length > 0 ? allow(WRITE_ACTIONS, below(writable)) : undefined,
  ]
  return JSON.stringify({ Version: '2012-10-17', Statement: statements.filter((one) => one !== undefined) })
}

function allow(actions: readonly string[], resources: readonly string[]): OutStatement {
  return { Effect: 'Allow', Principal: { AWS: ['*'] }, Action: actions, Resource: resources }
}
