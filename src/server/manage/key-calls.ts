import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { S3Error } from '../../../common/errors/s3-error.js'
import { hasLoneSurrogate, repeatedName } from '../../../common/json.js'
import type { Jobs } from '../../api/context.js'
import type { Identity } from '../../api/identity.js'
import type { Plugin } from '../../api/plugin.js'
import { identitySchema, type PolicyProblem, placeOf, policyProblems } from '../../auth/identity-schema.js'
import { withChanges } from '../../plugins/calls/call.js'
import { defineCall } from '../../plugins/calls/define-call.js'
import { hasEnded } from '../../plugins/jobs/record.js'
import { isNameOfSession } from '../../s3/sts/sessions.js'
import { type AdmitOperator, requireOwnAccount } from './operators.js'

/** The key pairs of a server that its owner adds to its own. */
export interface KeyStore {
  /** Access key id of the owner, which is not among the others. */
  owner(): string
  all(): Promise<readonly Identity[]>
  /**
   * Changes them, at once for all processes that use the store. Rejects with what `edit` throws, without any change.
   * @param edit takes the present ones, and returns those to be, with what this resolves to
   */
  change<T>(edit: (present: readonly Identity[]) => readonly [readonly Identity[], T]): Promise<T>
  /** The secret key of an account of the gateway, where this server keeps its accounts. */
  accountSecret(accessKey: string): Promise<string | undefined>
}

interface KeyCallsDeps {
  /** Undefined where a program keeps the key pairs that this server accepts. */
  readonly keys: KeyStore | undefined
  readonly policyProblem: PolicyProblem
  readonly admit: AdmitOperator
}

const source = 'docs/identities.md#calls'

const right = z.strictObject({
  Bucket: z.string().describe('A name, the beginning of names followed by `*`, or `*`.'),
  Prefix: z.string().optional().describe('The beginning of keys. Default: every key.'),
  Access: z.enum(['read', 'write', 'readwrite']),
})

const mayDo = {
  Rights: z
    .array(right)
    .meta({ element: 'Right' })
    .optional()
    .describe('What the key pair may do in buckets. Without it: all that its account may.'),
  Actions: z
    .array(z.string())
    .meta({ element: 'Action' })
    .optional()
    .describe('Calls of plugins that a key pair with `Rights` may make: `deal:CreateObjectDeal`, `pay:*`.'),
  Policies: z
    .array(z.string())
    .meta({ element: 'Policy' })
    .optional()
    .describe('Policy documents as JSON text: the key pair may do only what they allow, too.'),
}

const asks = {
  ...mayDo,
  All: z
    .boolean()
    .optional()
    .describe('Needed, as true, without `Rights` and `Policies`: the key pair may do all that its account may.'),
}

const keyFacts = {
  AccessKeyId: z.string(),
  Account: z.string().optional().describe('Access key of its account at the gateway; absent for that of the server.'),
  ...mayDo,
}

const secret = z.string().describe('Shown in this answer only.')

/** The calls by which an operator manages the key pairs of the server. */
export function keysPlugin(deps: KeyCallsDeps): Plugin {
  return Object.freeze({
    name: 'keys',
    operations: [listKeys(deps), addKey(deps), setKeyRights(deps), rotateKey(deps), removeKey(deps)],
  })
}

function listKeys({ keys }: KeyCallsDeps) {
  return defineCall({
    name: 'ListKeys',
    source,
    summary: 'Lists the key pairs that this server accepts, without their secrets.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/keys/v1' },
    pages: 'Keys',
    result: z.object({
      Owner: z.string().describe('Access key id of the owner, which has all rights and is changed by options alone.'),
      Keys: z.array(z.object(keyFacts)).meta({ element: 'Key' }),
    }),
    async answer(_, { caller }) {
      requireOwnAccount(caller)
      const store = known(keys)
      return { Owner: store.owner(), Keys: (await store.all()).map(shown) }
    },
  })
}

function addKey({ keys, policyProblem, admit }: KeyCallsDeps) {
  return defineCall({
    name: 'AddKey',
    source,
    summary: 'Adds a key pair, and returns its secret this once.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/keys/v1/{AccessKeyId}' },
    body: z.strictObject({
      AccountAccessKey: z
        .string()
        .optional()
        .describe('Account at the gateway that the key pair acts as. Default: that of the server.'),
      AccountSecretKey: z
        .string()
        .optional()
        .describe('Needed for the account of a gateway whose accounts this server does not keep.'),
      ...asks,
    }),
    result: z.object({ ...keyFacts, SecretAccessKey: secret }),
    async answer({ request, body }, { caller }) {
      await admit(caller)
      const store = known(keys)
      const accessKeyId = request.params.AccessKeyId ?? ''
      if (isNameOfSession(accessKeyId)) {
        throw new S3Error('InvalidArgument', {
          message: 'Sessions have such names: choose another access key id.',
          fields: { ArgumentName: 'AccessKeyId', ArgumentValue: accessKeyId },
        })
      }
      const account = await accountOf(store, body)
      const given = { accessKeyId, secretAccessKey: newSecret(), ...(account && { account }), ...asked(body) }
      const identity = checked(given, policyProblem)
      await store.change((present) => {
        if (accessKeyId === store.owner() || present.some((other) => other.accessKeyId === accessKeyId)) {
          throw new S3Error('EntityAlreadyExists', { message: 'There is a key pair with this access key id already.' })
        }
        return [[...present, identity], undefined]
      })
      return withChanges({ ...shown(identity), SecretAccessKey: identity.secretAccessKey }, mayWords(identity))
    },
  })
}

function setKeyRights({ keys, policyProblem, admit }: KeyCallsDeps) {
  return defineCall({
    name: 'SetKeyRights',
    source,
    summary: 'Replaces all rights, actions and policies of a key pair.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/keys/v1/{AccessKeyId}/rights' },
    body: z.strictObject(asks),
    result: z.object(keyFacts),
    async answer({ request, body }, { caller }) {
      await admit(caller)
      let before: readonly string[] = []
      const changed = await changeOne(known(keys), request.params.AccessKeyId ?? '', (identity) => {
        before = mayWords(identity)
        const { accessKeyId, secretAccessKey, account } = identity
        return checked({ accessKeyId, secretAccessKey, ...(account && { account }), ...asked(body) }, policyProblem)
      })
      return withChanges(shown(changed), [...before, '→', ...mayWords(changed)])
    },
  })
}

function rotateKey({ keys, admit }: KeyCallsDeps) {
  return defineCall({
    name: 'RotateKey',
    source,
    summary: 'Gives a key pair another secret, and returns it this once. The former one is refused at once.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/keys/v1/{AccessKeyId}/rotate' },
    body: z.strictObject({
      EndJobs: z
        .boolean()
        .optional()
        .describe(
          'Cancels the jobs of the key pair. Default: they go on, because they act by its name, not its secret.',
        ),
    }),
    result: z.object({
      AccessKeyId: z.string(),
      SecretAccessKey: secret,
      JobsGoingOn: jobIds.describe('Jobs of the key pair that go on; the first thousand.'),
      JobsEnded: jobIds.describe('Jobs that were cancelled.'),
    }),
    async answer({ request, body }, { caller, jobs }) {
      await admit(caller)
      const { accessKeyId, secretAccessKey } = await changeOne(
        known(keys),
        request.params.AccessKeyId ?? '',
        (identity) => ({ ...identity, secretAccessKey: newSecret() }),
      )
      const open = await openJobsOf(jobs, accessKeyId)
      const ended = body.EndJobs ? await endJobs(jobs, open) : []
      return {
        ...{ AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey },
        ...{ JobsGoingOn: open.filter((id) => !ended.includes(id)), JobsEnded: ended },
      }
    },
  })
}

/** Most jobs that an answer names. */
const MAX_JOBS = 1000

const jobIds = z.array(z.string()).meta({ element: 'JobId' })

/** Jobs that have not ended, the newest first. */
async function openJobsOf(jobs: Jobs, accessKeyId: string): Promise<string[]> {
  const open = await jobs.list({ accessKeyId, limit: MAX_JOBS, matches: ({ status }) => !hasEnded(status) })
  return open.map(({ id }) => id)
}

/** Resolves to the ids of those that were cancelled: one that has sent something irrevocable goes on. */
async function endJobs(jobs: Jobs, ids: readonly string[]): Promise<string[]> {
  const ended: string[] = []
  for (const id of ids) {
    try {
      await jobs.cancel(id)
      ended.push(id)
    } catch (error) {
      if (!(error instanceof S3Error) || (error.code !== 'InvalidRequest' && error.code !== 'NoSuchJob')) throw error
    }
  }
  return ended
}

function removeKey({ keys, admit }: KeyCallsDeps) {
  return defineCall({
    name: 'RemoveKey',
    source,
    summary: 'Removes a key pair. It is refused at once, in presigned URLs and sessions, too.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/keys/v1/{AccessKeyId}/remove' },
    result: z.object({ AccessKeyId: z.string() }),
    async answer({ request }, { caller }) {
      await admit(caller)
      const { accessKeyId } = await changeOne(known(keys), request.params.AccessKeyId ?? '', () => undefined)
      return { AccessKeyId: accessKeyId }
    },
  })
}

function known<T>(store: T | undefined): T {
  if (store !== undefined) return store
  throw new S3Error('NotImplemented', { message: 'This server does not keep them: they are managed elsewhere.' })
}

/**
 * Changes one key pair, or removes it if `edit` returns undefined. Resolves to it as it is now, or was. Throws S3Error
 * NoSuchEntity.
 */
async function changeOne(
  store: KeyStore,
  accessKeyId: string,
  edit: (identity: Identity) => Identity | undefined,
): Promise<Identity> {
  if (accessKeyId === store.owner()) {
    throw new S3Error('InvalidRequest', { message: 'The key pair of the owner is changed by the options alone.' })
  }
  return store.change((present) => {
    const found = present.find((identity) => identity.accessKeyId === accessKeyId)
    if (!found) throw new S3Error('NoSuchEntity', { message: 'There is no key pair with this access key id.' })
    const changed = edit(found)
    return [present.flatMap((identity) => (identity === found ? (changed ?? []) : identity)), changed ?? found]
  })
}

interface RightsRequest {
  readonly Rights?: readonly z.output<typeof right>[] | undefined
  readonly Actions?: readonly string[] | undefined
  readonly Policies?: readonly string[] | undefined
  readonly All?: boolean | undefined
}

/**
 * As the schema of identities has it, which checks it. What is missing must not give all rights: a client that sends no
 * body, or null, may have meant to limit the key pair. Throws InvalidArgument.
 */
function asked({ Rights, Actions, Policies, All }: RightsRequest): object {
  const isLimited = Rights !== undefined || (Policies !== undefined && Policies.length > 0)
  if ((!isLimited && All !== true) || (Rights !== undefined && All === true)) {
    throw new S3Error('InvalidArgument', {
      message:
        'Send Rights or Policies, or All as true for all that the account may; All and Rights exclude each other.',
      fields: { ArgumentName: 'Rights' },
    })
  }
  return {
    ...(Rights && {
      rights: Rights.map(({ Bucket, Prefix, Access }) => ({
        bucket: Bucket,
        ...(Prefix && { prefix: Prefix }),
        access: Access,
      })),
    }),
    ...(Actions && Actions.length > 0 && { actions: Actions }),
    ...(Policies && Policies.length > 0 && { policies: Policies.map(parsed) }),
  }
}

function parsed(text: string): unknown {
  const refuse = (message: string): never => {
    throw new S3Error('InvalidArgument', { message, fields: { ArgumentName: 'Policies' } })
  }
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    refuse('A policy is not JSON.')
  }
  if (hasLoneSurrogate(text)) refuse('A policy has an escape that is no Unicode character.')
  // JSON.parse takes the last one, which may allow what the first one denies.
  const name = repeatedName(text)
  return name === undefined ? document : refuse(`A policy has the member ${JSON.stringify(name)} twice in one object.`)
}

/** Throws InvalidArgument. */
function checked(given: object, policyProblem: PolicyProblem): Identity {
  const result = identitySchema.safeParse(given)
  const problems = result.success
    ? policyProblems(result.data, policyProblem)
    : result.error.issues.map(({ path, message }) => `${placeOf(path)} ${message}`)
  if (result.success && problems.length === 0) return result.data
  throw new S3Error('InvalidArgument', { message: `The key pair is not valid: ${problems.join('; ').slice(1)}.` })
}

async function accountOf(
  store: KeyStore,
  { AccountAccessKey: accessKey, AccountSecretKey: given }: { AccountAccessKey?: string; AccountSecretKey?: string },
): Promise<Identity['account']> {
  if (accessKey === undefined && given === undefined) return undefined
  const secretKey = given ?? (accessKey === undefined ? undefined : await store.accountSecret(accessKey))
  if (accessKey !== undefined && secretKey !== undefined) return { accessKey, secretKey }
  throw new S3Error('InvalidArgument', {
    message: 'The account is not one that this server keeps: AccountAccessKey and AccountSecretKey are both needed.',
    fields: { ArgumentName: 'AccountAccessKey' },
  })
}

function shown({ accessKeyId, account, rights, actions, policies }: Identity) {
  return {
    AccessKeyId: accessKeyId,
    ...(account && { Account: account.accessKey }),
    ...(rights && {
      Rights: rights.map(({ bucket, prefix, access }) => ({
        Bucket: bucket,
        ...(prefix !== undefined && { Prefix: prefix }),
        Access: access,
      })),
    }),
    ...(actions && { Actions: [...actions] }),
    ...(policies && { Policies: policies.map((policy) => JSON.stringify(policy)) }),
  }
}

/** Most words about a key pair that a list of changes has. */
const MAX_WORDS = 20

/** What a key pair may do, in short: buckets and actions. */
function mayWords({ rights, actions = [], policies = [] }: Identity): string[] {
  const words = [
    ...(rights ? rights.map(({ access, bucket }) => `${access}:${bucket}`) : ['all']),
    ...actions,
    ...(policies.length > 0 ? [`policies:${policies.length}`] : []),
  ]
  if (words.length === 0) return ['none']
  return words.length > MAX_WORDS ? [...words.slice(0, MAX_WORDS), '…'] : words
}

/** 160 random bits, in digits that are safe in shells, files and URLs. */
function newSecret(): string {
  return randomBytes(20).toString('hex')
}
