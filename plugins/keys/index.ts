import { randomBytes } from 'node:crypto'
import {
  type AdmitOperator,
  admission,
  defineCall,
  definePlugin,
  hasEnded,
  identityPolicyProblem,
  isNameOfSession,
  type Jobs,
  type PolicyProblem,
  requireOwnAccount,
  S3Error,
  withChanges,
  z,
} from 'dealgate/plugin'
import { asked, asks, checked, keyFacts, mayWords, shown } from './key-documents.js'
import { accountOf, changeOne, type KeyStore, known } from './key-store.js'

export type { KeyStore } from './key-store.js'

/** ms: long, since a new secret whose request has failed is known to no one. */
const DEADLINE_MS = 600_000

interface KeyCallsDeps {
  /** Undefined where a program keeps the key pairs that this server accepts. */
  readonly keys: KeyStore | undefined
  readonly policyProblem: PolicyProblem
  readonly admit: AdmitOperator
}

const source = 'docs/identities.md#calls'

const secret = z.string().describe('Shown in this answer only.')

/** Ids of jobs in an answer. */
const jobIds = z.array(z.string()).meta({ element: 'JobId' })

/** The calls by which an operator manages the key pairs of the server. */
export default definePlugin({
  name: 'keys',
  standard: true,
  summary: 'Calls that manage the key pairs which the server accepts.',
  options: z.object({
    store: z
      .custom<KeyStore>((value) => typeof Object(value).change === 'function', 'must be a KeyStore')
      .optional()
      .describe(
        'What keeps the key pairs, which `identities` must find, for programs. The command line gives its own.',
      ),
  }),
  create({ store }, host) {
    const policyProblem = (document: unknown) => identityPolicyProblem(document, host.own.plugins.actions)
    const deps = { keys: store, policyProblem, admit: admission(host.state) }
    return { operations: [listKeys(deps), addKey(deps), setKeyRights(deps), rotateKey(deps), removeKey(deps)] }
  },
})

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
    deadlineMs: DEADLINE_MS,
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
    deadlineMs: DEADLINE_MS,
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

/** Most jobs that an answer names. */
const MAX_JOBS = 1000

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

/** 160 random bits, in digits that are safe in shells, files and URLs. */
function newSecret(): string {
  return randomBytes(20).toString('hex')
}
