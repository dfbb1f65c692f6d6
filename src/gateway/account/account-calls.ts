import { randomBytes } from 'node:crypto'
import { S3Error } from '../../../common/errors/s3-error.js'
import { isRecord } from '../../../common/json.js'
import type { GatewayAccount } from '../../api/identity.js'
import type { RpcResult } from '../calls/rpc-sender.js'
import type { GatewayClient } from '../client.js'
import { nonsense } from '../errors.js'
import type { AccountKeys } from './log-in.js'
import type { LogIn } from './session.js'

/** What the gateway says about itself. Public versions leave some of it out. */
interface ServerFacts {
  readonly version: string | undefined
  readonly memory: string | undefined
  readonly platform: string | undefined
  readonly runtime: string | undefined
  readonly region: string | undefined
  /** True when only the secret key of the account can be changed. */
  readonly isIamUser: boolean | undefined
  readonly features: readonly string[]
  readonly uiVersion: string | undefined
}

/** Bytes. */
interface StorageFacts {
  readonly used: number
  readonly total: number | undefined
  readonly available: number | undefined
}

interface NewKeys {
  readonly accessKey?: string
  /** Default: 40 random hex digits. */
  readonly secretKey?: string
}

/** Calls about an account and its gateway. All throw S3Error. */
export interface AccountCalls {
  serverInfo(): Promise<ServerFacts>
  storageInfo(): Promise<StorageFacts>
  /**
   * Changes the keys of the account at the gateway and wherever this server keeps them. Resolves with the access key.
   * Throws S3Error NotImplemented when this server does not keep keys, and ServiceUnavailable when the outcome is
   * unknown; the server then uses whichever keys the gateway accepts.
   */
  rotate(keys: NewKeys): Promise<string>
}

export function accountCalls(client: GatewayClient, logIn: LogIn, keys: AccountKeys | undefined): AccountCalls {
  const { session, names } = client
  let rotating: Promise<unknown> = Promise.resolve()

  async function serverInfo(): Promise<ServerFacts> {
    return readServerInfo(await session.call({ method: 'web.ServerInfo', params: {}, repeatable: true }), (name) =>
      names.member(name),
    )
  }

  async function rotate(keys: AccountKeys, { accessKey, secretKey }: NewKeys): Promise<string> {
    // The account must be able to log in before a change is recorded: one whose outcome is unknown stays on record.
    const { isIamUser } = await serverInfo()
    const current = await logIn.account()
    if (accessKey !== undefined && isIamUser !== false) {
      throw new S3Error('InvalidArgument', {
        message: 'The gateway changes only the secret key of this account: leave NewAccessKey out.',
        fields: { ArgumentName: 'NewAccessKey' },
      })
    }
    const next = {
      accessKey: accessKey ?? current.accessKey,
      secretKey: secretKey ?? randomBytes(20).toString('hex'),
    }
    await keys.prepare(current, next)
    await setAuth(keys, current, next)
    await keys.confirm(current, next).catch((cause: unknown) => {
      throw new S3Error('InternalError', {
        message: `The gateway has the new keys, and this server uses them, but could not store them everywhere: ${(cause as Error).message}`,
        cause,
      })
    })
    return next.accessKey
  }

  async function setAuth(keys: AccountKeys, current: GatewayAccount, next: GatewayAccount): Promise<void> {
    try {
      await session.call({
        method: 'web.SetAuth',
        params: {
          currentAccessKey: current.accessKey,
          currentSecretKey: current.secretKey,
          newAccessKey: next.accessKey,
          newSecretKey: next.secretKey,
        },
      })
    } catch (error) {
      if (isRefusal(error)) {
        await keys.withdraw(current, next)
        throw error
      }
      if (await logIn.accepts(next).catch(() => false)) return
      throw new S3Error('ServiceUnavailable', {
        message:
          'It is unknown whether the gateway has changed the keys. This server uses whichever keys the gateway accepts. Look at server-info, and try again.',
        cause: error,
      })
    }
  }

  return {
    serverInfo,
    async storageInfo() {
      return readStorageInfo(await session.call({ method: 'web.StorageInfo', params: {}, repeatable: true }))
    },
    rotate(given) {
      if (keys === undefined) {
        throw new S3Error('NotImplemented', {
          message: 'This server does not keep the keys of gateway accounts: change them where they are configured.',
        })
      }
      // One after the other: each needs the keys that the one before has set.
      const rotated = rotating.then(() => rotate(keys, given))
      rotating = rotated.catch(() => {})
      return rotated
    },
  }
}

/** True when the gateway has certainly not changed anything. */
function isRefusal(error: unknown): boolean {
  const codes: readonly string[] = [
    'AccessDenied',
    'MethodNotAllowed',
    'InvalidArgument',
    'InvalidRequest',
    'NotImplemented',
    'SlowDown',
  ]
  return error instanceof S3Error && codes.includes(error.code)
}

function readServerInfo(result: RpcResult, member: (name: string) => string): ServerFacts {
  const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)
  const [global, user, features] = ['GlobalInfo', 'UserInfo', 'Features'].map((name) => result[member(name)])
  return {
    version: text(result[member('Version')]),
    memory: text(result[member('Memory')]),
    platform: text(result[member('Platform')]),
    runtime: text(result[member('Runtime')]),
    region: isRecord(global) ? text(global.serverRegion) : undefined,
    isIamUser: isRecord(user) && typeof user.isIAMUser === 'boolean' ? user.isIAMUser : undefined,
    features: Array.isArray(features) ? features.filter((feature) => typeof feature === 'string') : [],
    uiVersion: text(result.uiVersion),
  }
}

/** MinIO nests the numbers; FS3 answers `used` alone (filswan/fs3 cmd/web-handlers.go). */
function readStorageInfo(result: RpcResult): StorageFacts {
  const info = isRecord(result.storageInfo) ? result.storageInfo : { Used: result.used }
  const bytes = (value: unknown) => (typeof value === 'number' && value >= 0 ? value : undefined)
  const used = bytes(info.Used)
  if (used === undefined) throw nonsense('answered web.StorageInfo without the bytes used')
  return { used, total: bytes(info.Total), available: bytes(info.Available) }
}
