import { z } from 'zod'
import { S3Error } from '../../common/errors/s3-error.js'
import type { Context } from '../api/context.js'
import type { Plugin } from '../api/plugin.js'
import type { AccountCalls } from '../gateway/account/account-calls.js'
import type { AccountSource } from '../gateway/account/log-in.js'
import { defineCall } from '../plugins/calls/define-call.js'

const source = 'docs/extensions.md#gateway'

/** The calls about the gateway account that a caller acts as. */
interface GatewayCallsDeps {
  /** The account of callers without one of their own. */
  readonly account: AccountSource
  calls(account: AccountSource): AccountCalls
}

/** The calls by which clients ask about the gateway and change the keys of their account at it. */
export function gatewayPlugin({ account, calls }: GatewayCallsDeps): Plugin {
  const callsOf = ({ caller }: Context) => calls(caller?.identity.account ?? account)
  return Object.freeze({
    name: 'gateway',
    operations: [getServerInfo(callsOf), getStorageInfo(callsOf), rotateCredentials(callsOf)],
  })
}

type CallsOf = (context: Context) => AccountCalls

const serverInfo = z.object({
  Version: z.string().optional().describe('Version of the gateway.'),
  Memory: z.string().optional(),
  Platform: z.string().optional(),
  Runtime: z.string().optional(),
  Region: z.string().optional(),
  IsIamUser: z.boolean().optional().describe('True when only the secret key of the account can be changed.'),
  Features: z.array(z.string()).meta({ element: 'Feature' }).describe('Capabilities beyond the specification.'),
  UiVersion: z.string().optional(),
})

function getServerInfo(callsOf: CallsOf) {
  return defineCall({
    name: 'GetServerInfo',
    source,
    summary: 'Returns what the gateway says about itself and about the account of the caller.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/gateway/v1/server-info' },
    result: serverInfo,
    async answer(_, context) {
      const { version, memory, platform, runtime, region, isIamUser, features, uiVersion } =
        await callsOf(context).serverInfo()
      return {
        ...defined({ Version: version, Memory: memory, Platform: platform, Runtime: runtime, Region: region }),
        ...(isIamUser !== undefined && { IsIamUser: isIamUser }),
        Features: [...features],
        ...defined({ UiVersion: uiVersion }),
      }
    },
  })
}

function getStorageInfo(callsOf: CallsOf) {
  return defineCall({
    name: 'GetStorageInfo',
    source,
    summary: 'Returns the bytes that the gateway stores and has room for.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/gateway/v1/storage-info' },
    result: z.object({
      Used: z.int().describe('Bytes; those of the account, where the gateway counts them by account.'),
      Total: z.int().optional().describe('Bytes.'),
      Available: z.int().optional().describe('Bytes.'),
    }),
    async answer(_, context) {
      const { used, total, available } = await callsOf(context).storageInfo()
      return { Used: used, ...defined({ Total: total, Available: available }) }
    },
  })
}

function rotateCredentials(callsOf: CallsOf) {
  return defineCall({
    name: 'RotateCredentials',
    source,
    summary: 'Changes the keys of the account of the caller, at the gateway and where this server keeps them.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/gateway/v1/credentials/rotate' },
    body: z.strictObject({
      NewAccessKey: z
        .string()
        .regex(/^[\x21-\x2e\x30-\x7e]{3,128}$/, 'must be 3 to 128 printable ASCII characters without space and slash')
        .optional()
        .describe('Default: the access key stays. Only the first account of a gateway can have another.'),
      NewSecretKey: z
        .string()
        .regex(/^[\x21-\x7e]{8,128}$/, 'must be 8 to 128 printable ASCII characters without space')
        .optional()
        .describe('Default: a new random one, which only this server knows.'),
    }),
    result: z.object({ AccessKey: z.string().describe('The access key that the account has now.') }),
    async answer({ body: { NewAccessKey: accessKey, NewSecretKey: secretKey } }, context) {
      // The keys of the account have all its rights: with a secret of its own choice, the caller could log in itself.
      const { rights, session } = context.caller?.identity ?? {}
      if (rights || session) {
        throw new S3Error('AccessDenied', {
          message: 'Only a lasting key pair with all rights of its account may change the keys of the account.',
        })
      }
      const keys = { ...(accessKey !== undefined && { accessKey }), ...(secretKey !== undefined && { secretKey }) }
      return { AccessKey: await callsOf(context).rotate(keys) }
    },
  })
}

/** Without the members that have no value. */
function defined<T extends object>(members: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as never
}
