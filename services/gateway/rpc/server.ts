import { statfs } from 'node:fs/promises'
import { arch, availableParallelism, hostname, platform } from 'node:os'
import { z } from 'zod'
import { version } from '../../../common/files/package-folder.js'
import { type Account, withKeys } from '../accounts/accounts.js'
import { isSamePair, type KeyPair } from '../accounts/key-pair.js'
import { GatewayError } from '../errors.js'
import { defineMethod, defineSignedMethod, type RpcMethod, text } from './method.js'

/** Backend type FS in MinIO's numbering (cmd/object-api-datatypes.go). */
const FILE_SYSTEM = 1

export const storageInfo = defineSignedMethod({
  name: 'web.StorageInfo',
  params: z.object({}),
  async run(_, { context, account }) {
    const { bsize, blocks, bavail } = await statfs(context.folder)
    const Backend = {
      Type: FILE_SYSTEM,
      OnlineDisks: 0,
      OfflineDisks: 0,
      StandardSCData: 0,
      StandardSCParity: 0,
      RRSCData: 0,
      RRSCParity: 0,
      Sets: null,
    }
    const { bytes } = await context.db.read.buckets.usage(account.id)
    return { storageInfo: { Used: bytes, Total: bsize * blocks, Available: bsize * bavail, Backend } }
  },
})

export const serverInfo = defineSignedMethod({
  name: 'web.ServerInfo',
  params: z.object({}),
  run(_, { context, account }) {
    const { member } = context.names
    return {
      [`${member}Version`]: version(),
      [`${member}Memory`]: memory(),
      [`${member}Platform`]: `Host: ${hostname()} | OS: ${platform()} | Arch: ${arch()}`,
      [`${member}Runtime`]: `Version: node ${process.version} | CPUs: ${availableParallelism()}`,
      [`${member}GlobalInfo`]: {
        isBrowserEnabled: false,
        isDistXL: false,
        isEnvBrowser: false,
        isEnvCreds: context.configuredKeys,
        isEnvRegion: context.region !== '',
        isSSL: false,
        isWorm: false,
        isXL: false,
        serverRegion: context.region,
      },
      [`${member}UserInfo`]: { isIAMUser: account.isIamUser },
      ...featureMember(`${member}Features`, [...context.features]),
    }
  },
})

/** Without features the member is absent, as on gateways that predate it. */
function featureMember(name: string, features: readonly string[]): object {
  return features.length === 0 ? {} : { [name]: features }
}

function memory(): string {
  const { rss, heapTotal, heapUsed, external } = process.memoryUsage()
  return [
    `Used: ${humanize(heapUsed + external)}`,
    `Allocated: ${humanize(rss)}`,
    `Used-Heap: ${humanize(heapUsed)}`,
    `Allocated-Heap: ${humanize(heapTotal)}`,
  ].join(' | ')
}

/** Formats bytes with an SI unit and at least two digits. */
function humanize(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(bytes, 1)) / 3))
  const value = bytes / 1000 ** power
  return `${value < 10 && power > 0 ? value.toFixed(1) : Math.round(value)} ${units[power]}`
}

/**
 * Says why a log-in is refused, which the caller has been found to deserve.
 * @param named the account with the access key of the pair
 */
type LogInRefusal = (pair: KeyPair, named: Account | undefined) => GatewayError

export const logIn = (refusal: LogInRefusal): RpcMethod =>
  defineMethod({
    name: 'web.Login',
    access: 'public',
    params: z.object({ username: text, password: text }),
    async run({ username, password }, { context, client }) {
      const pair = { accessKey: username, secretKey: password }
      const named = await context.db.read.accounts.find(username)
      const account = await context.logIns.attempt(client, username, () => {
        const known = withKeys(pair, named)
        if (known === undefined) throw refusal(pair, named)
        return known
      })
      return { token: await context.tokens.login(account) }
    },
  })

/** Work and error are the same whichever key is wrong. */
export const login = logIn(() => new GatewayError('Authentication'))

export const createUrlToken = defineSignedMethod({
  name: 'web.CreateURLToken',
  params: z.object({}),
  run: async (_, { context, account }) => ({ token: await context.tokens.url(account) }),
})

/**
 * Replaces the keys of the caller's account; of an account other than the first one only the secret key, whatever new
 * access key is given (MinIO cmd/web-handlers.go, `SetAuth`). All tokens issued before become invalid.
 */
export const setAuth = defineSignedMethod({
  name: 'web.SetAuth',
  params: z.object({ currentAccessKey: text, currentSecretKey: text, newAccessKey: text, newSecretKey: text }),
  async run({ currentAccessKey, currentSecretKey, newAccessKey, newSecretKey }, { context, client, account }) {
    const current = { accessKey: currentAccessKey, secretKey: currentSecretKey }
    await context.logIns.attempt(client, account.accessKey, () => {
      if (!isSamePair(current, account)) throw new GatewayError('WrongCurrentKeys')
    })
    const accessKey = account.isIamUser ? account.accessKey : newAccessKey
    const changed = await context.db.transaction(({ accounts }) =>
      accounts.rotate(account.id, current, { accessKey, secretKey: newSecretKey }),
    )
    return { token: await context.tokens.login(changed), peerErrMsgs: null }
  },
})
