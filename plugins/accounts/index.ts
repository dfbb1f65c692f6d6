import {
  type AdmitOperator,
  admission,
  defineCall,
  definePlugin,
  requireOwnAccount,
  S3Error,
  withChanges,
  z,
} from 'dealgate/plugin'

/** ms: long, since a new secret whose request has failed is known to no one. */
const DEADLINE_MS = 600_000

/** What an account may store in all of its buckets; null for no bound. */
interface Quota {
  readonly bytes: number | null
  readonly objects: number | null
  /** Multipart uploads under way. */
  readonly uploads: number | null
}

interface Standing {
  readonly quota: Quota
  readonly usage: { readonly bytes: number; readonly objects: number }
}

/** An account of the gateway. */
interface KeptAccount extends Standing {
  readonly accessKey: string
  readonly name: string
  readonly canonicalId: string
  /** False for the first account, which the server uses itself. */
  readonly isIamUser: boolean
  readonly created: string
  readonly buckets: number
}

/** The accounts of the gateway that runs with the server. Methods reject with S3Error for what cannot be done. */
export interface AccountStore {
  all(): Promise<readonly KeptAccount[]>
  /** Resolves to its secret key. */
  add(accessKey: string, name: string): Promise<string>
  /** Resolves to its new secret key, and the access key ids of the key pairs that got it. */
  rotate(accessKey: string): Promise<{ readonly secretKey: string; readonly keys: readonly string[] }>
  /** @param change new bounds; those that are absent stay */
  setQuota(accessKey: string, change: Partial<Quota>): Promise<{ readonly before: Standing; readonly after: Standing }>
  /** Resolves to the access key ids of key pairs that acted as the account, and stay. */
  remove(accessKey: string): Promise<readonly string[]>
}

const source = 'docs/accounts.md#calls'

const account = {
  AccessKey: z.string(),
  Name: z.string().describe('For people; clients of S3 do not see it.'),
  CanonicalId: z.string().describe('By which policies and ACLs name it.'),
}

const bounds = z.object({
  Bytes: z.int().optional(),
  Objects: z.int().optional(),
  Uploads: z.int().optional().describe('Multipart uploads under way.'),
})

const standing = {
  Quota: bounds.describe('What it may store in all of its buckets; what is absent has no bound.'),
  Stored: z.object({ Bytes: z.int(), Objects: z.int() }),
}

const secret = z.string().describe('Shown in this answer only.')
const keyIds = z.array(z.string()).meta({ element: 'Key' })

/** The calls by which an operator manages the accounts of the embedded gateway. */
export default definePlugin({
  name: 'accounts',
  standard: true,
  summary: 'Calls that manage the accounts of the embedded gateway.',
  options: z.object({
    store: z
      .custom<AccountStore>((value) => typeof Object(value).setQuota === 'function', 'must be an AccountStore')
      .optional()
      .describe('What keeps the accounts, for programs; the command line gives its own.'),
  }),
  create({ store: accounts }, host) {
    const store = (): AccountStore => {
      if (accounts) return accounts
      throw new S3Error('NotImplemented', { message: 'The accounts of this gateway are managed there.' })
    }
    const admit = admission(host.state)
    return {
      operations: [
        listAccounts(store),
        addAccount(store, admit),
        rotateAccount(store, admit),
        setAccountQuota(store, admit),
        removeAccount(store, admit),
      ],
    }
  },
})

type Store = () => AccountStore

function listAccounts(store: Store) {
  return defineCall({
    name: 'ListAccounts',
    source,
    summary: 'Lists the accounts of the embedded gateway, without their secrets.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/accounts/v1' },
    pages: 'Accounts',
    result: z.object({
      Accounts: z
        .array(
          z.object({
            ...account,
            Own: z.boolean().describe('True for the account that the server uses itself.'),
            Created: z.string().describe('RFC 3339.'),
            Buckets: z.int(),
            ...standing,
          }),
        )
        .meta({ element: 'Account' }),
    }),
    async answer(_, { caller }) {
      requireOwnAccount(caller)
      return {
        Accounts: (await store().all()).map((kept) => ({
          AccessKey: kept.accessKey,
          Name: kept.name,
          CanonicalId: kept.canonicalId,
          Own: !kept.isIamUser,
          Created: kept.created,
          Buckets: kept.buckets,
          ...shown(kept),
        })),
      }
    },
  })
}

function addAccount(store: Store, admit: AdmitOperator) {
  return defineCall({
    name: 'AddAccount',
    source,
    summary: 'Adds an account to the embedded gateway, and returns its secret this once.',
    deadlineMs: DEADLINE_MS,
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/accounts/v1/{AccessKey}' },
    body: z.strictObject({
      Name: z
        .string()
        .regex(/^[^\p{Cc}]{0,128}$/u, 'must have at most 128 characters on one line')
        .optional()
        .describe('Default: none.'),
    }),
    result: z.object({ AccessKey: account.AccessKey, SecretKey: secret }),
    async answer({ request, body }, { caller }) {
      await admit(caller)
      const accessKey = request.params.AccessKey ?? ''
      return { AccessKey: accessKey, SecretKey: await store().add(accessKey, body.Name ?? '') }
    },
  })
}

function rotateAccount(store: Store, admit: AdmitOperator) {
  return defineCall({
    name: 'RotateAccount',
    source,
    summary: 'Gives an account another secret, in the key pairs that act as it, too, and returns it this once.',
    deadlineMs: DEADLINE_MS,
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/accounts/v1/{AccessKey}/rotate' },
    result: z.object({
      AccessKey: account.AccessKey,
      SecretKey: secret,
      Keys: keyIds.describe('Key pairs that act as the account, and got the secret.'),
    }),
    async answer({ request }, { caller }) {
      await admit(caller)
      const accessKey = request.params.AccessKey ?? ''
      const { secretKey, keys } = await store().rotate(accessKey)
      return { AccessKey: accessKey, SecretKey: secretKey, Keys: [...keys] }
    },
  })
}

const bound = z.int().min(0).max(999_999_999_999_999).nullable().optional()

function setAccountQuota(store: Store, admit: AdmitOperator) {
  return defineCall({
    name: 'SetAccountQuota',
    source,
    summary: 'Bounds what an account may store in all of its buckets.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/accounts/v1/{AccessKey}/quota' },
    body: z.strictObject({
      Bytes: bound.describe('null ends the bound; absent, it stays. So do the others.'),
      Objects: bound,
      Uploads: bound.describe('Multipart uploads under way.'),
    }),
    result: z.object({ AccessKey: account.AccessKey, ...standing }),
    async answer({ request, body: { Bytes: bytes, Objects: objects, Uploads: uploads } }, { caller }) {
      await admit(caller)
      const accessKey = request.params.AccessKey ?? ''
      const change = {
        ...(bytes !== undefined && { bytes }),
        ...(objects !== undefined && { objects }),
        ...(uploads !== undefined && { uploads }),
      }
      const { before, after } = await store().setQuota(accessKey, change)
      const changed = [...wordsOf(before.quota), '→', ...wordsOf(after.quota)]
      return withChanges({ AccessKey: accessKey, ...shown(after) }, changed)
    },
  })
}

/** The words of the audit log about a quota: `bytes:1000`. */
function wordsOf(quota: Quota): string[] {
  return Object.entries(quota).map(([name, value]) => `${name}:${value ?? 'none'}`)
}

function shown({ quota: { bytes, objects, uploads }, usage }: Standing) {
  return {
    Quota: {
      ...(bytes !== null && { Bytes: bytes }),
      ...(objects !== null && { Objects: objects }),
      ...(uploads !== null && { Uploads: uploads }),
    },
    Stored: { Bytes: usage.bytes, Objects: usage.objects },
  }
}

function removeAccount(store: Store, admit: AdmitOperator) {
  return defineCall({
    name: 'RemoveAccount',
    source,
    summary: 'Removes an account that owns no buckets.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/accounts/v1/{AccessKey}/remove' },
    result: z.object({
      AccessKey: account.AccessKey,
      Keys: keyIds.describe('Key pairs that acted as the account: they stay, and no longer work.'),
    }),
    async answer({ request }, { caller }) {
      await admit(caller)
      const accessKey = request.params.AccessKey ?? ''
      return { AccessKey: accessKey, Keys: [...(await store().remove(accessKey))] }
    },
  })
}
