import { readFileSync, rmSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { isDiskFull } from '../common/disk-reserve.js'
import { writePrivateFile } from '../common/files/private-file.js'
import type { AuditEntry } from '../src/server/audit.js'
import { awsFiles, readAwsProfile } from './aws-profile.js'
import { describeError, Failure } from './command.js'
import { type Config, ConfigError, flagOf, isGiven, type OptionName, variable } from './config/config.js'
import { findKeys } from './keys/keys.js'
import { listServer } from './known-servers.js'
import { bootTime, isRunning, type RunningServer, runningServer } from './running-server.js'
import { openLogFile } from './serve/observability.js'

function file(data: string): string {
  return join(data, 'running.json')
}

/** Records a server that has started with a data folder. Returns what removes the record. */
export function recordServer(data: string, server: Omit<RunningServer, 'pid' | 'boot'>): () => void {
  const addresses = Object.entries(server).map(([name, value]) => [name, name === 'region' ? value : reachable(value)])
  const record = runningServer.parse({ pid: process.pid, boot: bootTime(), ...Object.fromEntries(addresses) })
  const unlist = listServer(data, record)
  try {
    writePrivateFile(file(data), `${JSON.stringify(record)}\n`)
  } catch (error) {
    // The server can still read, and commands beside it have options for its address.
    if (!isDiskFull(error)) throw error
    rmSync(file(data), { force: true })
  }
  return () => {
    unlist()
    if (read(data)?.pid === process.pid) rmSync(file(data), { force: true })
  }
}

/** The server that runs with a data folder; undefined if none does, or in another container. */
export function findServer(data: string): RunningServer | undefined {
  const server = read(data)
  return server && isRunning(server) ? server : undefined
}

function read(data: string): RunningServer | undefined {
  try {
    return runningServer.parse(JSON.parse(readFileSync(file(data), 'utf8')))
  } catch {
    return undefined
  }
}

/** A server that listens on all addresses is reached by the loopback address. */
function reachable(url: string | undefined): string | undefined {
  return url?.replace('://0.0.0.0:', '://127.0.0.1:').replace('://[::]:', '://[::1]:')
}

type Service = 'platform' | 'payment' | 'gateway'

/** Options that say where a service is. */
const ADDRESS_OPTIONS: Readonly<Record<Service, readonly [OptionName, OptionName, OptionName]>> = {
  platform: ['platformUrl', 'platformHost', 'platformPort'],
  payment: ['paymentUrl', 'paymentHost', 'paymentPort'],
  gateway: ['gatewayUrl', 'gatewayHost', 'gatewayPort'],
}

/**
 * URL of a service for a command: as the options say, else that of the server which runs with the data folder. Commands
 * send passwords and orders there, so a default port is not taken: another server may have it. Throws Failure.
 */
export function serviceOf(config: Config, service: Service): string {
  const [url, host, port] = ADDRESS_OPTIONS[service]
  const given = config[url]
  if (typeof given === 'string') return given
  if (isGiven(config, host) || isGiven(config, port)) return urlAt(String(config[host]), Number(config[port]))
  const found = findServer(config.data)?.[service]
  if (found !== undefined) return found
  throw new Failure(
    `No dealgate with this service runs with the data folder ${config.data}: name the folder by --data, or the service by ${service === 'gateway' ? '--gateway' : flagOf(url)}.`,
  )
}

/** URL of the S3 endpoint, like `serviceOf`; undefined if neither options, variables nor a running server name one. */
export function findEndpoint(config: Config, given: string | undefined): string | undefined {
  if (given !== undefined || isGiven(config, 'port') || isGiven(config, 'host')) return given ?? ownEndpoint(config)
  return variable('AWS_ENDPOINT_URL_S3') ?? variable('AWS_ENDPOINT_URL') ?? ownEndpoint(config)
}

/** URL of the S3 endpoint by `--host` and `--port` if they are given, else of the server that runs with the data. */
export function ownEndpoint(config: Config): string | undefined {
  if (isGiven(config, 'port') || isGiven(config, 'host')) return config.port === 0 ? undefined : localEndpoint(config)
  return findServer(config.data)?.endpoint
}

/**
 * The endpoint that `findEndpoint` finds, without a path. Throws Failure if there is none, and ConfigError for a text
 * that is no URL.
 */
export function endpointOf(config: Config, given?: string): URL {
  const text = findEndpoint(config, given)
  if (text === undefined)
    throw new Failure(
      `No dealgate runs with the data folder ${config.data}: name the folder by --data, or the endpoint by --endpoint-url.`,
    )
  if (isEndpoint(text)) return new URL(text)
  throw new ConfigError([NO_ENDPOINT])
}

export const NO_ENDPOINT = '--endpoint-url must be an http or https URL without a query'

export function isEndpoint(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined
  return url !== undefined && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === ''
}

/** URL of an S3 endpoint on this machine with these options. */
export function localEndpoint({ host, port, tlsCert }: Config): string {
  return urlAt(host, port, tlsCert.length > 0 ? 'https' : 'http')
}

function urlAt(host: string, port: number, scheme = 'http'): string {
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `${scheme}://${reached.includes(':') ? `[${reached}]` : reached}:${port}`
}

export interface Signer {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
  readonly region: string
  /** The endpoint that a profile names. */
  readonly endpoint?: string
}

/**
 * The key pair with which a command signs: that of the options, of `--profile`, of `AWS_ACCESS_KEY_ID` or `AWS_PROFILE`
 * as aws-cli takes them, else that of the data folder. Throws Failure if there is none.
 */
export async function signerOf(config: Config, profileName?: string): Promise<Signer> {
  const region = isGiven(config, 'region')
    ? config.region
    : (variable('AWS_REGION') ?? variable('AWS_DEFAULT_REGION') ?? findServer(config.data)?.region ?? config.region)
  const { accessKey, secretKey } = config
  const accessKeyId = variable('AWS_ACCESS_KEY_ID')
  const secretAccessKey = variable('AWS_SECRET_ACCESS_KEY')
  if (profileName === undefined && accessKey !== undefined && secretKey !== undefined)
    return { accessKeyId: accessKey, secretAccessKey: secretKey, region }
  if (profileName === undefined && accessKeyId !== undefined && secretAccessKey !== undefined) {
    const sessionToken = variable('AWS_SESSION_TOKEN')
    return { accessKeyId, secretAccessKey, region, ...(sessionToken !== undefined && { sessionToken }) }
  }
  const name = profileName ?? variable('AWS_PROFILE')
  if (name !== undefined) {
    const { name: _, ...profile } = readAwsProfile(awsFiles(), name)
    return { ...profile, region: profile.region ?? region }
  }
  const keys = await findKeys(config)
  if (keys) return { accessKeyId: keys.accessKey, secretAccessKey: keys.secretKey, region }
  throw new Failure(
    `There is no key pair in ${config.data} yet. Start dealgate once, name its data folder by --data, or give --access-key and --secret-key.`,
  )
}

/** `dealgate keys env`: prints what a shell evaluates, with the key pair of the options or the data folder. */
export async function printEnvironment(config: Config): Promise<void> {
  const keys = await findKeys(config)
  if (keys === undefined)
    throw new Failure(
      `There is no key pair in ${config.data} yet. Start dealgate once, or name its data folder by --data.`,
    )
  const server = findServer(config.data)
  const endpoint = ownEndpoint(config)
  process.stdout.write(
    exportLine({
      AWS_ACCESS_KEY_ID: keys.accessKey,
      AWS_SECRET_ACCESS_KEY: keys.secretKey,
      AWS_DEFAULT_REGION: isGiven(config, 'region') ? config.region : (server?.region ?? config.region),
      ...(endpoint !== undefined && { AWS_ENDPOINT_URL: endpoint }),
    }),
  )
}

/** A line for POSIX shells and fish that sets variables of the environment, with its end. */
export function exportLine(variables: Readonly<Record<string, string>>): string {
  const words = Object.entries(variables).map(([name, value]) => `${name}=${shellWord(value)}`)
  return `export ${words.join(' ')}\n`
}

/** The text as one word of a POSIX shell. */
export function shellWord(text: string): string {
  return /^[\w./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

type Action<Rest extends unknown[], Result> = (config: Config, ...rest: Rest) => Promise<Result>

/** What a command has changed, for the audit log. */
export type Changed = Pick<AuditEntry, 'resource' | 'amount'>

/**
 * A command that changes access, settings or spending, with an entry in the audit log if the options name one. The file
 * is opened first: without it, the command changes nothing.
 * @param command `keys add`
 * @param changes false for flags that only show something
 */
export function recorded<Rest extends unknown[]>(
  command: string,
  action: Action<Rest, Changed>,
  changes: (...rest: Rest) => boolean = () => true,
): Action<Rest, void> {
  return async (config, ...rest) => {
    if (config.auditLog === undefined || !changes(...rest)) {
      await action(config, ...rest)
      return
    }
    const file = await openLogFile('--audit-log', config.auditLog)
    const record = (about: Changed & Pick<AuditEntry, 'outcome'>) => {
      const entry: AuditEntry = { time: new Date().toISOString(), action: command, user: userName(), ...about }
      return file.write(JSON.stringify(entry), true).catch((cause) => {
        const reason = describeError(cause)
        throw new Failure(`The audit log has no line of this command, whose outcome is ${about.outcome}: ${reason}`, {
          cause,
        })
      })
    }
    try {
      const [resource] = rest
      const changed = await action(config, ...rest).catch(async (error) => {
        await record({ ...(typeof resource === 'string' && { resource }), outcome: 'failed' })
        throw error
      })
      await record({ ...changed, outcome: 'ok' })
    } finally {
      await file.close()
    }
  }
}

/** Undefined for a user id without a name. */
function userName(): string | undefined {
  try {
    return userInfo().username
  } catch {
    return undefined
  }
}
