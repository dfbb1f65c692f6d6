import { LIST_ACTION, READ_ACTIONS, UPLOADS_ACTION, WRITE_ACTIONS } from './actions.js'
import type { PublicAccess } from './public-access.js'

interface OutStatement {
  readonly Effect: 'Allow'
  readonly Principal: { readonly AWS: readonly string[] }
  readonly Action: readonly string[]
  readonly Resource: readonly string[]
  readonly Condition?: object
}

/** Returns a policy document that grants the same as the gateway's rules, which must not be empty. */
export function fromAccess({ entries, hidden }: PublicAccess, bucket: string): string {
  const readable = entries.filter(({ policy }) => policy !== 'writeonly').map(({ prefix }) => prefix)
  const writable = entries.filter(({ policy }) => policy !== 'readonly').map(({ prefix }) => prefix)
  const arn = `arn:aws:s3:::${bucket}`
  const below = (prefixes: readonly string[]) => prefixes.map((prefix) => `${arn}/${prefix}*`)
  const hiddenReads = hidden.filter(({ action }) => action === 'get').map(({ prefix }) => prefix)
  const hiddenLists = hidden.filter(({ action }) => action === 'list').map(({ prefix }) => prefix)
  const statements = [
    ...listing(hiddenLists, arn),
    hiddenReads.length > 0 ? allow(READ_ACTIONS, below(hiddenReads)) : undefined,
    ...listing(readable, arn),
    readable.length > 0 ? allow(READ_ACTIONS, below(readable)) : undefined,
    writable.length > 0 ? allow([UPLOADS_ACTION], [arn]) : undefined,
    writable.length > 0 ? allow(WRITE_ACTIONS, below(writable)) : undefined,
  ]
  return JSON.stringify({ Version: '2012-10-17', Statement: statements.filter((one) => one !== undefined) })
}

/** Returns statements that allow listing with exactly these prefixes; '' allows any. */
function listing(prefixes: readonly string[], arn: string): (OutStatement | undefined)[] {
  const bound = prefixes.filter((prefix) => prefix !== '')
  return [
    prefixes.includes('') ? allow([LIST_ACTION], [arn]) : undefined,
    bound.length > 0
      ? { ...allow([LIST_ACTION], [arn]), Condition: { StringEquals: { 's3:prefix': bound } } }
      : undefined,
  ]
}

function allow(actions: readonly string[], resources: readonly string[]): OutStatement {
  return { Effect: 'Allow', Principal: { AWS: ['*'] }, Action: actions, Resource: resources }
}
