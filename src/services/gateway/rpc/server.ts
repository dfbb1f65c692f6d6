import { readFileSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { arch, availableParallelism, hostname, platform } from 'node:os'
import { z } from 'zod'
import { defineMethod } from './method.js'

/** Backend type FS, as MinIO numbers them (cmd/object-api-datatypes.go). */
const FILE_SYSTEM = 1

export const storageInfo = defineMethod({
  name: 'web.StorageInfo',
  access: 'signed',
  params: z.object({}),
  async run(_, { context }) {
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
    const { bytes } = context.buckets.usage()
    return { storageInfo: { Used: bytes, Total: bsize * blocks, Available: bsize * bavail, Backend } }
  },
})

export const serverInfo = defineMethod({
  name: 'web.ServerInfo',
  access: 'signed',
  params: z.object({}),
  run(_, { context }) {
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
      [`${member}UserInfo`]: { isIAMUser: false },
      ...featureMember(`${member}Features`, [...context.features]),
    }
  },
})

/** A gateway without any of them says nothing, as one that never heard of them. */
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

/** Bytes with an SI unit and two digits at least. */
function humanize(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(bytes, 1)) / 3))
  const value = bytes / 1000 ** power
  return `${value < 10 && power > 0 ? value.toFixed(1) : Math.round(value)} ${units[power]}`
}

let cachedVersion: string | undefined

/** Of this package. */
function version(): string {
  if (cachedVersion === undefined) {
    const manifest = readFileSync(new URL('../../../../../package.json', import.meta.url), 'utf8')
    cachedVersion = z.object({ version: z.string() }).parse(JSON.parse(manifest)).version
  }
  return cachedVersion
}
