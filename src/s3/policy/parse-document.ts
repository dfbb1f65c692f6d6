import { z } from 'zod'
import { repeatedName } from '../../access/decision/language/repeated-name.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { hasPrototypeKey } from '../../common/prototype-key.js'

/** Largest policy document, bytes: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-policies.html */
export const MAX_POLICY_BYTES = 20 * 1024

const texts = z.union([z.string().transform((text) => [text]), z.array(z.string()).min(1)])

const statement = z.strictObject({
  Sid: z.string().optional(),
  Effect: z.enum(['Allow', 'Deny']),
  Principal: z.union([z.string(), z.record(z.string(), texts)]).optional(),
  NotPrincipal: z.unknown().optional(),
  Action: texts.optional(),
  NotAction: z.unknown().optional(),
  Resource: texts.optional(),
  NotResource: z.unknown().optional(),
  Condition: z.record(z.string(), z.record(z.string(), z.union([texts, z.boolean(), z.number()]))).optional(),
})

const document = z.strictObject({
  Version: z.enum(['2012-10-17', '2008-10-17']).optional(),
  Id: z.string().optional(),
  Statement: z.union([z.array(statement).min(1), statement.transform((one) => [one])]),
})

export interface Statement extends z.output<typeof statement> {
  /** For messages: `statement 2 ("Sid")`. */
  readonly label: string
}

/** Parses a policy document to its statements and checks only their structure. Throws MalformedPolicy. */
export function parsePolicy(text: string): Statement[] {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (cause) {
    throw new S3Error('MalformedPolicy', { message: 'The policy is not in valid JSON format.', cause })
  }
  // zod drops this name from records (https://github.com/colinhacks/zod), so a condition of that name would be lost.
  if (hasPrototypeKey(json)) throw new S3Error('MalformedPolicy', { message: 'The policy holds a member "__proto__".' })
  const name = repeatedName(text)
  if (name !== undefined)
    throw new S3Error('MalformedPolicy', { message: `The policy holds an object with ${JSON.stringify(name)} twice.` })
  const result = document.safeParse(json)
  if (!result.success) throw malformed(result.error, json)
  return result.data.Statement.map((one, index) => ({ ...one, label: labelOf(index, one.Sid) }))
}

function labelOf(index: number, sid: string | undefined): string {
  return sid === undefined || sid === '' ? `statement ${index + 1}` : `statement ${index + 1} ("${sid}")`
}

function malformed(error: z.ZodError, json: unknown): S3Error {
  const issue = error.issues[0]
  // Of alternative forms, the one with the deepest error path describes the problem best.
  const inner =
    issue?.code === 'invalid_union' ? issue.errors.flat().sort((a, b) => b.path.length - a.path.length)[0] : undefined
  const path = [...(issue?.path ?? []), ...(inner?.path ?? [])]
  const what = inner?.message ?? issue?.message ?? 'not a policy'
  return new S3Error('MalformedPolicy', { message: `${placeOf(path, json)}: ${what}` })
}

/** `statement 2 ("Sid"), Effect` */
function placeOf(path: readonly PropertyKey[], json: unknown): string {
  const [first, ...rest] = path.map(String)
  if (first === undefined) return 'The policy'
  if (first !== 'Statement') return [first, ...rest].join('.')
  const index = /^\d+$/.test(rest[0] ?? '') ? Number(rest.shift()) : 0
  const list = (json as { Statement?: unknown }).Statement
  const one: unknown = Array.isArray(list) ? list[index] : list
  const sid =
    typeof one === 'object' && one !== null && 'Sid' in one && typeof one.Sid === 'string' ? one.Sid : undefined
  return [labelOf(index, sid), ...rest].join(', ')
}
