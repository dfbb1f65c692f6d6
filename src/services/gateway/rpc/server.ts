import { readFileSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { arch, availableParallelism, hostname, platform } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { packageFolder } from '../../../common/files/package-folder.js'
import { defineSignedMethod } from './method.js'

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
    const { bytes } = context.buckets.usage(account.id)
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

let cachedVersion: string | undefined

/** Version of this package. */
function version(): string {
  if (cachedVersion === undefined) {
    const manifest = readFileSync(join(packageFolder(), 'package.json'), 'utf8')
    cachedVersion = z.object({ version: z.string() }).parse(JSON.parse(manifest)).version
  }
  return cachedVersion
}
