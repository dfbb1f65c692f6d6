import type { S3Error } from '../../../../common/errors/s3-error.js'
import { type Decision, type Documents, decide } from '../../../../src/access/decide.js'
import { evaluatePolicy, parsePolicy } from '../../../../src/access/policy.js'
import type { Principal, Question } from '../../../../src/access/question.js'

export const OWNER = 'a'.repeat(64)
export const PARTNER = 'b'.repeat(64)
export const STRANGER = 'c'.repeat(64)
export const BUCKET = 'photos'
export const ARN = `arn:aws:s3:::${BUCKET}`

export const anonymous: Principal = { kind: 'anonymous' }
export const account = (id: string): Principal => ({ kind: 'account', account: id })
export const arnOf = (id: string, name: string) => `arn:aws:iam::${id}:user/${name}`
export const user = (id: string, name: string): Principal => ({ kind: 'account', account: id, arn: arnOf(id, name) })

export type Values = Readonly<Record<string, string | readonly string[]>>

/** A question about a key of the bucket, or the bucket itself for undefined. */
export function ask(principal: Principal, action: string, key?: string, values: Values = {}): Question {
  const context = new Map(Object.entries(values).map(([name, value]) => [name.toLowerCase(), [value].flat()]))
  return {
    principal,
    action,
    resource: key === undefined ? ARN : `${ARN}/${key}`,
    conditions: { get: (name) => context.get(name) },
  }
}

export const allow = (Action: unknown, Resource: unknown, more: object = {}) => ({
  Effect: 'Allow',
  Principal: '*',
  Action,
  Resource,
  ...more,
})
export const deny = (Action: unknown, Resource: unknown, more: object = {}) => ({
  ...allow(Action, Resource, more),
  Effect: 'Deny',
})

export const document = (...Statement: unknown[]) => JSON.stringify({ Version: '2012-10-17', Statement })
export const bucketPolicy = (...statements: unknown[]) =>
  parsePolicy(document(...statements), { kind: 'bucket', bucket: BUCKET })
/** The policy of an identity: the same statements without Principal. */
export const identityPolicy = (...statements: object[]) =>
  parsePolicy(document(...statements.map((one) => ({ ...one, Principal: undefined }))), { kind: 'identity' })

/** The effect of a bucket policy of these statements. */
export const effectOf = (question: Question, ...statements: unknown[]) =>
  evaluatePolicy(bucketPolicy(...statements), question).effect

/** Returns the message of MalformedPolicy, or another error; 'accepted' if there is none. */
export function refusal(text: string, kind: 'bucket' | 'identity' = 'bucket'): string {
  try {
    parsePolicy(text, kind === 'bucket' ? { kind, bucket: BUCKET } : { kind })
  } catch (error) {
    const { code, message } = error as S3Error
    return code === 'MalformedPolicy' ? message : `${code}: ${message}`
  }
  return 'accepted'
}

const OPEN = { ignorePublicAcls: false, restrictPublicBuckets: false }

type Changes = Partial<Omit<Documents, 'block'>> & { readonly block?: Partial<Documents['block']> }

/** Decides with the documents of a private bucket of the owner, changed by these. */
export function outcome(question: Question, changes: Changes = {}): Decision['outcome'] {
  const block = { ...OPEN, ...changes.block }
  return decide(question, { owner: OWNER, ownership: 'BucketOwnerEnforced', ...changes, block }).outcome
}
