import pMap from 'p-map'
import { z } from 'zod'
import { compareUtf8 } from '../../common/byte-order.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { isRoot } from '../access/answers.js'
import { findingsOf } from '../access/findings.js'
import { parsePolicy } from '../access/policy.js'
import type { Context } from '../api/context.js'
import type { Credentials, Identity } from '../api/identity.js'
import type { Plugin } from '../api/plugin.js'
import type { RequestHead } from '../api/request.js'
import { canonicalId, OWN_ID } from '../auth/credentials.js'
import { PageOf } from '../plugins/calls/call.js'
import { defineCall } from '../plugins/calls/define-call.js'
import { isOpenToEverybody } from '../s3/access/bucket-policy-operations.js'
import { confirmedBlock, requirePolicyAllowed } from '../s3/access/public-access-block.js'
import type { Simulate } from './simulate.js'

const source = 'docs/access.md#who-may'

interface AccessCallsDeps {
  readonly simulate: Simulate
  /** Key pairs that are not temporary. */
  readonly credentials: Credentials
}

/** The calls by which the owner of buckets finds out what their policies say, and would say. */
export function accessPlugin(deps: AccessCallsDeps): Plugin {
  return Object.freeze({ name: 'access', operations: [getDecision(deps), describePolicy(deps), listBucketAccess()] })
}

function getDecision(deps: AccessCallsDeps) {
  return defineCall({
    name: 'GetDecision',
    source,
    summary: 'Returns whether a key pair, or an unsigned request, may use an action on a bucket or object, and why.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/access/v1/decisions/{Bucket}' },
    query: z.strictObject({
      key: z.string().min(1).optional().describe('Absent for an action on the bucket.'),
      action: z.string().min(1).max(200).describe('Such as s3:GetObject.'),
      'access-key-id': z
        .string()
        .min(1)
        .max(200)
        .optional()
        .describe('Whose request it is: an access key id or the ARN of one. Absent: an unsigned request.'),
    }),
    result: z.object({
      Decision: z.enum(['Allowed', 'Refused']),
      Reason: z.string().describe('The statement, ACL, right or rule that decides.'),
      Principal: z.string().describe('The ARN of the key pair, or *.'),
    }),
    async answer({ request, query }, context) {
      const bucket = request.params.Bucket ?? ''
      const { key, action } = query
      await requireReader(deps, request, context, bucket)
      const identity = await identityOf(deps, query['access-key-id'], context)
      const asked = { identity, action, bucket, key, from: request }
      const { allowed, reason } = await deps.simulate(asked, context.gateway)
      const decision = allowed ? ('Allowed' as const) : ('Refused' as const)
      return { Decision: decision, Reason: reason, Principal: identity ? arnOf(identity) : '*' }
    },
  })
}

function describePolicy(deps: AccessCallsDeps) {
  return defineCall({
    name: 'DescribePolicy',
    source,
    summary: 'Returns what is wrong with a bucket policy, and what it opens to everybody, before it is stored.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/access/v1/policy-findings' },
    body: z.strictObject({ Bucket: z.string().min(1), Policy: z.string().describe('The document, as text.') }),
    result: z.object({
      Findings: z
        .array(
          z.object({
            Level: z.enum(['error', 'warning']).describe('An error keeps the policy from being stored.'),
            Statement: z.number().int().optional().describe('Place of the statement, from 1.'),
            Message: z.string(),
          }),
        )
        .meta({ element: 'Finding' }),
    }),
    async answer({ request, body: { Bucket: bucket, Policy: text } }, context) {
      await requireReader(deps, request, context, bucket)
      const options = { kind: 'bucket', bucket, pluginActions: context.plugins.actions } as const
      const findings = findingsOf(text, options).map(({ level, statement, message }) => ({
        ...{ Level: level, Message: message },
        ...(statement !== undefined && { Statement: statement }),
      }))
      if (findings.some(({ Level }) => Level === 'error')) return { Findings: findings }
      const refused = await refusedByBlock(context, bucket, text)
      const refusal = { Level: 'error', Message: refused ?? '' } as const
      return { Findings: refused === undefined ? findings : [refusal, ...findings] }
    },
  })
}

/** Buckets that are looked at concurrently: each takes some calls to the gateway. */
const MAX_CONCURRENCY = 8

function listBucketAccess() {
  return defineCall({
    name: 'ListBucketAccess',
    source: 'docs/access.md#public-buckets',
    summary: 'Lists the own buckets, and whether a policy, an ACL or the gateway opens each to everybody.',
    access: 'signed',
    // Decided for each bucket, by the right that GetBucketPolicyStatus needs.
    ownRules: true,
    on: { method: 'GET', resource: 'service', path: '/-/access/v1/buckets' },
    query: z.strictObject({ from: z.string().optional().describe('Name of the first bucket, in the order of UTF-8.') }),
    pages: 'Buckets',
    result: z.object({
      Buckets: z
        .array(
          z.object({
            Bucket: z.string(),
            Public: z.boolean().optional().describe('Absent where the caller may not ask GetBucketPolicyStatus.'),
          }),
        )
        .meta({ element: 'BucketAccess' }),
    }),
    async answer({ query, page }, context) {
      const from = page.from ?? query.from ?? ''
      const own = (await context.gateway.listBuckets()).map(({ name }) => name)
      const names = own.filter((name) => compareUtf8(name, from) >= 0).sort(compareUtf8)
      const found = await pMap(names.slice(0, page.limit), (name) => accessTo(name, context), {
        concurrency: MAX_CONCURRENCY,
      })
      return { Buckets: new PageOf(found.flat(), names[page.limit]) }
    },
  })
}

/** Nothing for a bucket that is deleted meanwhile. */
async function accessTo(bucket: string, context: Context): Promise<{ Bucket: string; Public?: boolean }[]> {
  try {
    context.checks.requireWholeBucket(bucket, 'read')
    await context.authorizer.requireAction('s3:GetBucketPolicyStatus', { bucket })
    return [{ Bucket: bucket, Public: await isOpenToEverybody(context, bucket) }]
  } catch (error) {
    if (error instanceof S3Error && error.code === 'AccessDenied') return [{ Bucket: bucket }]
    if (error instanceof S3Error && error.code === 'NoSuchBucket') return []
    throw error
  }
}

async function refusedByBlock(context: Context, bucket: string, text: string): Promise<string | undefined> {
  try {
    requirePolicyAllowed(await confirmedBlock(context, bucket), parsePolicy(text, { kind: 'bucket', bucket }))
    return undefined
  } catch (error) {
    if (error instanceof S3Error && error.code === 'AccessDenied') return error.message
    throw error
  }
}

/** Throws AccessDenied, NoSuchBucket unless the caller owns the bucket and may read its policy. */
async function requireReader(
  { simulate }: AccessCallsDeps,
  from: RequestHead,
  { caller, checks, gateway }: Context,
  bucket: string,
): Promise<void> {
  await checks.requireOwner(bucket)
  const asked = { identity: caller?.identity, action: 's3:GetBucketPolicy', bucket, key: undefined, from }
  const { allowed } = await simulate(asked, gateway)
  if (!allowed) throw new S3Error('AccessDenied')
}

/**
 * The identity that is asked about. What the policies of a key pair say is for those who manage it: a key pair without
 * limits for those of its account, one of the server's own account for all, any other for itself.
 */
async function identityOf(
  { credentials }: AccessCallsDeps,
  named: string | undefined,
  { caller }: Context,
): Promise<Identity | undefined> {
  if (named === undefined) return undefined
  const id = /^arn:aws:iam::[0-9a-f]{64}:user\/(.+)$/s.exec(named)?.[1] ?? named
  const self = caller?.identity
  const isSelf = id === self?.accessKeyId
  const identity = isSelf || !isRoot(caller) ? self : await credentials(id)
  const own = self && canonicalId(self)
  const mayKnow = identity && (isSelf || (isRoot(caller) && (own === OWN_ID || canonicalId(identity) === own)))
  if (mayKnow && (named === id || named === arnOf(identity))) return identity
  throw new S3Error('InvalidArgument', {
    message: 'There is no key pair of this id whose policies you may know.',
    fields: { ArgumentName: 'access-key-id' },
  })
}

function arnOf(identity: Identity): string {
  return `arn:aws:iam::${canonicalId(identity)}:user/${identity.accessKeyId}`
}
