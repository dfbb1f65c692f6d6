import { S3Error } from '../../../common/errors/s3-error.js'
import { childText, document, element, parseXml, requireChildren, type XmlNode } from '../../../common/xml.js'
import { isPublic, type Policy } from '../../access/policy.js'
import type { Context } from '../../api/context.js'
import type { HiddenAccess, PolicyEntry } from '../../api/gateway.js'
import type { BucketSettings } from '../../api/settings.js'
import type { State } from '../../api/state.js'
import { xml } from '../../http/reply.js'
import { bucketSetting } from '../bucket/bucket-setting.js'

/**
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_PublicAccessBlockConfiguration.html, in the order of its schema.
 */
const BLOCKS = ['BlockPublicAcls', 'IgnorePublicAcls', 'BlockPublicPolicy', 'RestrictPublicBuckets'] as const

type PublicAccessBlock = Readonly<Record<(typeof BLOCKS)[number], boolean>>

declare module '../../api/settings.js' {
  interface SettingTypes {
    publicAccessBlock: PublicAccessBlock
  }
}

/**
 * The block of the bucket, for checks before a policy or an ACL is stored. Throws S3Error ServiceUnavailable where the
 * store may have lost it. The store is examined after the read: one that loses its records in between would show no
 * block.
 */
export async function confirmedBlock(
  { settings, state }: { readonly settings: BucketSettings; readonly state: Pick<State, 'requireIntact'> },
  bucket: string,
): Promise<PublicAccessBlock | undefined> {
  const block = await settings.confirmed(bucket, 'publicAccessBlock')
  await state.requireIntact()
  return block
}

/** Throws AccessDenied while BlockPublicAcls forbids public ACLs. For ACLs that are public. */
export async function refusePublicAcl(context: Parameters<typeof confirmedBlock>[0], bucket: string): Promise<void> {
  const block = await confirmedBlock(context, bucket)
  if (!block?.BlockPublicAcls) return
  throw new S3Error('AccessDenied', {
    message: "The bucket's public access block has BlockPublicAcls: public ACLs are refused.",
  })
}

/** Throws AccessDenied for a public policy while BlockPublicPolicy forbids one. */
export function requirePolicyAllowed(block: PublicAccessBlock | undefined, policy: Policy): void {
  if (!block?.BlockPublicPolicy || !isPublic(policy)) return
  throw new S3Error('AccessDenied', {
    message:
      "The bucket's public access block has BlockPublicPolicy, which forbids policies for everybody. Remove the block with DeletePublicAccessBlock first.",
  })
}

/** The rights of anonymous callers in a bucket. */
export interface PublicAccess {
  /** Rules that the gateway lists, in UTF-8 byte order of the prefix. */
  readonly entries: readonly PolicyEntry[]
  /** Further rights, as far as probing has shown. */
  readonly hidden: readonly HiddenAccess[]
}

/** Reads the rules from the gateway, so that rules of other programs count as well. Throws S3Error. */
export async function readPublicAccess({ gateway }: Pick<Context, 'gateway'>, bucket: string): Promise<PublicAccess> {
  const entries = await gateway.listPolicies(bucket)
  return { entries, hidden: await gateway.hiddenAccess(bucket, entries) }
}

/** Reads the rules that concern one object. */
export async function readObjectAccess(
  { gateway }: Pick<Context, 'gateway'>,
  bucket: string,
  key: string,
): Promise<PublicAccess> {
  const entries = await gateway.listPolicies(bucket)
  const folder = key.slice(0, key.lastIndexOf('/', key.length - 2) + 1)
  return { entries, hidden: await gateway.hiddenAccess(bucket, entries, [folder]) }
}

export function isPublicBucket({ entries, hidden }: PublicAccess): boolean {
  return entries.length > 0 || hidden.length > 0
}

/** Formats rights for messages: `readonly on "a/*"`. */
function describeAccess({ entries, hidden }: PublicAccess): string {
  const rules = entries.map(({ prefix, policy }) => `${policy} on "${prefix}*"`)
  const others = hidden.map(({ prefix, action }) =>
    action === 'get' ? `reading objects below "${prefix}"` : `listing or writing "${prefix}"`,
  )
  return [...rules, ...others].join(', ')
}

/** Returns the error for rights that the gateway still grants after their removal. */
export function notRemovable(left: PublicAccess): S3Error {
  return new S3Error('NotImplemented', {
    message: `The bucket is still public: the gateway keeps rules for everybody that dealgate cannot remove: ${describeAccess(left)}. Remove them on the gateway itself.`,
  })
}

/**
 * BlockPublicPolicy and RestrictPublicBuckets refuse policies for everybody; RestrictPublicBuckets also refuses all
 * anonymous requests to this server. BlockPublicAcls refuses public ACLs. ACLs never grant anything by themselves, so
 * IgnorePublicAcls always holds.
 */
export const publicAccessBlock = bucketSetting({
  name: 'PublicAccessBlock',
  subresource: 'publicAccessBlock',
  action: 'BucketPublicAccessBlock',
  aboutAccess: true,
  get: {
    async run({ bucket }, context) {
      const block = await context.settings.confirmed(bucket, 'publicAccessBlock')
      if (!block) return 'NoSuchPublicAccessBlockConfiguration'
      const shown = {
        ...block,
        RestrictPublicBuckets: block.RestrictPublicBuckets && (await holds(context, bucket)),
      }
      return xml(document('PublicAccessBlockConfiguration', BLOCKS.map((name) => element(name, shown[name])).join('')))
    },
  },
  put: {
    partly: 'RestrictPublicBuckets only for a bucket that no rule of another program opens on the gateway (access.md).',
    async run(bytes, { bucket }, context) {
      const block = readBlock(await parseXml(bytes, 'PublicAccessBlockConfiguration'))
      const run = async () => {
        if (block.RestrictPublicBuckets) await withdrawRules(context, bucket)
        await context.state.raiseMark()
        await context.settings.set(bucket, 'publicAccessBlock', block)
      }
      await context.state.locks.withName(`bucket-policy/${bucket}`, run, { logger: context })
      return undefined
    },
  },
  remove: {
    async run(bucket, { settings, state }) {
      // A store that has lost its records cannot show whether the removal would open the bucket.
      await state.requireIntact()
      await settings.delete(bucket, 'publicAccessBlock')
    },
  },
})

/**
 * Returns false if another program has opened the bucket on the gateway since RestrictPublicBuckets was set here,
 * because the gateway then serves the bucket publicly.
 */
async function holds(context: Context, bucket: string): Promise<boolean> {
  const present = await readPublicAccess(context, bucket)
  if (!isPublicBucket(present)) return true
  context.log.warn(
    { bucket, rules: describeAccess(present) },
    'a bucket with RestrictPublicBuckets is public by rules of the gateway; remove them with DeleteBucketPolicy',
  )
  return false
}

function readBlock(root: XmlNode): PublicAccessBlock {
  requireChildren(root, 'PublicAccessBlockConfiguration', { once: BLOCKS })
  return Object.fromEntries(BLOCKS.map((name) => [name, readBoolean(name, childText(root, name))])) as PublicAccessBlock
}

function readBoolean(name: string, text: string | undefined): boolean {
  const word = text?.trim().toLowerCase()
  if (word === undefined || word === 'false') return false
  if (word === 'true') return true
  throw new S3Error('MalformedXML', { message: `${name} must be true or false.` })
}

/**
 * Takes back the rules by which the gateway itself serves what the policy of the bucket grants everybody: the policy
 * stays, and this server alone decides by it. Throws NotImplemented if the bucket is public by other rules, because the
 * gateway would keep serving it, whatever this server answers.
 */
async function withdrawRules(context: Context, bucket: string): Promise<void> {
  const { gateway, settings } = context
  const present = await readPublicAccess(context, bucket)
  if (!isPublicBucket(present)) return
  const record = await settings.confirmed(bucket, 'policy')
  const { entries: own = [] } = record ?? {}
  const isOwn = ({ prefix, policy }: PolicyEntry) => own.some((one) => one.prefix === prefix && one.policy === policy)
  if (!record || present.hidden.length > 0 || !present.entries.every(isOwn)) throw notWithdrawable(present)
  for (const { prefix } of present.entries) await gateway.setPolicy(bucket, prefix, 'none')
  await settings.set(bucket, 'policy', { ...record, entries: [] })
  const left = await readPublicAccess(context, bucket)
  if (isPublicBucket(left)) throw notRemovable(left)
}

function notWithdrawable(present: PublicAccess): S3Error {
  return new S3Error('NotImplemented', {
    message: `RestrictPublicBuckets is not possible for a bucket that rules of the gateway open to everybody, because the gateway itself would keep serving it (${describeAccess(present)}). Remove them with DeleteBucketPolicy first.`,
    fields: { ArgumentName: 'RestrictPublicBuckets' },
  })
}
