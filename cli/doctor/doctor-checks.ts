import { stat, statfs } from 'node:fs/promises'
import { createServer } from 'node:net'
import { createLogger, type Logger } from '../../common/log.js'
import { tryBodies } from '../../services/gateway/store/open-bodies.js'
import { examineStore } from '../../src/state/open-backend.js'
import { openState } from '../../src/state/open-state.js'
import { obtainPlugins } from '../built-in-plugins.js'
import { describeError, Failure, listenFailure } from '../command.js'
import { type Config, unknownVariables } from '../config/config.js'
import { credentialsPath, readCredentials } from '../keys/credentials-file.js'
import { findKeys, keysFile } from '../keys/keys.js'
import { EVERY_USER, othersWhoCanRead } from '../process/identities-file.js'
import { namesOf, readKeyPair } from '../process/tls.js'
import { ownEndpoint } from '../running.js'
import {
  bodiesOf,
  type GatewayInUse,
  obtainGateway,
  poolOf,
  servicesFolder,
  unasked,
  withKnownStores,
} from '../serve/gateway.js'
import { gatewayTlsOf, tlsFilesOf } from '../serve/server-options.js'
import { checkVerified } from '../verify-command.js'
import { checkEncryptionKeys } from './encryption-keys.js'
import { ask, isRunning, likelyMistake, mixedBrand } from './gateway-mistakes.js'
import { checkRequests, checkServer, type Finding } from './running-server.js'

interface Check {
  readonly name: string
  /** True: needs only the server at `--endpoint-url`, and nothing of this machine. */
  readonly elsewhere?: true
  /** True: reads all objects, and is made with `--verify` alone. */
  readonly verifies?: true
  /** Returns the finding, or undefined if nothing is to be checked. Throws a Failure with problem and remedy. */
  run(config: Config, endpointUrl: string | undefined): Promise<string | Finding | undefined>
}

const MIN_NODE = [20, 18, 1] as const
/**
 * Maximum clock skew of SigV4 requests, seconds: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
 * (RequestTimeTooSkewed).
 */
const MAX_SKEW_SECONDS = 15 * 60
/** Uploads are staged on this disk: with less space than a large part needs, they fail. */
const MIN_FREE_BYTES = 1024 ** 3

export const checks: readonly Check[] = [
  { name: 'Node', elsewhere: true, run: async () => checkNode() },
  { name: 'variables', run: async () => checkVariables() },
  { name: 'data folder', run: checkData },
  { name: 'state store', run: checkStore },
  { name: 'free space', run: checkSpace },
  { name: 'key pair', run: checkKeys },
  { name: 'credentials file', run: checkCredentials },
  { name: 'plugins', run: checkPlugins },
  { name: 'certificates', run: checkCertificates },
  { name: 'endpoint', run: checkEndpoint },
  { name: 'websites', run: checkWebsites },
  { name: 'server', elsewhere: true, run: checkServer },
  { name: 'requests', elsewhere: true, run: checkRequests },
  { name: 'databases', run: checkDatabases },
  { name: 'bodies', run: checkBodies },
  { name: 'bytes of objects', verifies: true, run: checkVerified },
  { name: 'gateway', run: checkGateway },
  { name: 'encryption keys', run: checkEncryptionKeys },
  { name: 'clock', run: checkClock },
]

function checkNode(): string {
  const version = process.versions.node
  const parts = version.split('.').map(Number)
  const at = MIN_NODE.findIndex((least, i) => parts[i] !== least)
  if (at >= 0 && (parts[at] ?? 0) < (MIN_NODE[at] ?? 0)) {
    throw new Failure(`this is Node ${version}; install ${MIN_NODE.join('.')} or newer.`)
  }
  return version
}

function checkVariables(): Finding | undefined {
  const warnings = unknownVariables()
  return warnings.length === 0 ? undefined : { text: 'of the environment', warnings }
}

async function checkData(config: Config): Promise<string> {
  if (await isRunning(config)) return inUse(config)
  try {
    const state = await openState({ data: config.data, url: config.state, log: quiet(), gateway: unasked })
    await state.close()
  } catch (error) {
    // The running server may listen on another port than these options specify.
    if (isDataInUse(error)) return inUse(config)
    throw error
  }
  return `${config.data} can be written${config.state ? ', and the state database answers' : ''}`
}

/** Runs also while a dealgate is running, unless the store is in its data folder. */
async function checkStore(config: Config): Promise<Finding | undefined> {
  if (config.state === undefined && (await isRunning(config))) return undefined
  const findings = await withKnownStores(config, quiet(), (gateway) =>
    examineStore({
      gateway,
      data: config.data,
      url: config.state,
      timeoutMs: config.stateTimeoutMs,
      log: quiet(),
    }),
  ).catch((error: unknown) => {
    if (isDataInUse(error)) return undefined
    throw error
  })
  if (findings === undefined) return undefined
  const { problem, advice } = findings
  if (problem !== undefined) throw new Failure(problem)
  if (config.state === undefined) return undefined
  const { protocol, host } = new URL(config.state)
  return { text: `${protocol}//${host} has what was kept in it`, warnings: advice }
}

function inUse({ data }: Config): string {
  return `${data}, in use by a running dealgate`
}

/** True for this error of the state and of the embedded services. */
function isDataInUse(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'DATA_IN_USE'
}

async function checkSpace(config: Config): Promise<string> {
  const { bavail, bsize } = await statfs(config.data)
  const free = bavail * bsize
  const shown = `${(free / 1024 ** 3).toFixed(1)} GiB free`
  if (free < MIN_FREE_BYTES) throw new Failure(`${shown} in ${config.data}. Make room, or move the folder with --data.`)
  return shown
}

async function checkKeys(config: Config): Promise<string> {
  const keys = await findKeys(config)
  if (!keys) return 'none yet; the first start makes one'
  if (config.accessKey === undefined && process.platform !== 'win32') {
    const { mode } = await stat(keysFile(config.data))
    if ((mode & 0o077) !== 0)
      throw new Failure(`others can read ${keysFile(config.data)}. Run: chmod 600 ${keysFile(config.data)}`)
  }
  return keys.accessKey
}

/** Containers get such files with a group of their own, so that a group that can read is no failure. */
async function checkCredentials(config: Config): Promise<string | Finding | undefined> {
  const file = credentialsPath(config)
  const found = await stat(file).catch(() => undefined)
  if (!found && config.credentialsFile === undefined) return undefined
  if (!found) throw new Failure(`there is no ${file}. Make it with: dealgate keys add`)
  const identities = await readCredentials(file)
  const readers = othersWhoCanRead(found.mode)
  const exposed = `${readers} can read ${file}. Run: chmod 600 ${file}`
  if (readers === EVERY_USER) throw new Failure(exposed)
  return { text: `${identities.length} key pairs in ${file}`, warnings: readers === undefined ? [] : [exposed] }
}

/** Runs also while the services run. */
async function checkDatabases(config: Config): Promise<Finding | undefined> {
  if (config.gatewayUrl !== undefined) return undefined
  const [{ examineDatabases }, { postgresAdvice }] = await Promise.all([
    import('../../services/databases.js'),
    import('../../engines/postgres/backend.js'),
  ])
  return examineDatabases(servicesFolder(config), config.database, postgresAdvice)
}

/** Writes, reads and removes a body. */
async function checkBodies(config: Config): Promise<string | undefined> {
  const bodies = bodiesOf(config)
  if (bodies === undefined) return undefined
  try {
    return await tryBodies(bodies)
  } catch (error) {
    throw new Failure(`the store of ${bodies.url} cannot be used. ${describeError(error)}`)
  }
}

async function checkPlugins(config: Config): Promise<string> {
  const plugins = await obtainPlugins(config)
  return plugins.length === 0 ? 'none' : plugins.map(({ plugin }) => plugin.name).join(', ')
}

async function checkCertificates(config: Config): Promise<string | undefined> {
  const pairs = tlsFilesOf(config).map(readKeyPair)
  for (const { certificate } of pairs) {
    const { validFrom, validTo } = certificate
    if (Date.now() < Date.parse(validFrom) || Date.now() > Date.parse(validTo))
      throw new Failure(`the one for ${namesOf(certificate)} is valid from ${validFrom} to ${validTo}. Renew it.`)
  }
  if (pairs.length === 0) return undefined
  return pairs.map(({ certificate }) => `${namesOf(certificate)} until ${certificate.validTo}`).join('; ')
}

async function checkEndpoint(config: Config): Promise<string> {
  if (await isRunning(config)) return `${ownEndpoint(config)} is served by a running dealgate`
  return mustBeFree(config.host, config.port, '--port')
}

async function checkWebsites(config: Config): Promise<string | undefined> {
  const { host, websitePort: port, websiteDomain } = config
  if (port === 'off') return undefined
  const found = (await isRunning(config)) ? `${host}:${port}` : await mustBeFree(host, port, '--website-port')
  return `${found}; each bucket is a host below ${websiteDomain.join(', ')}`
}

async function mustBeFree(host: string, port: number, option: string): Promise<string> {
  await listenOnce(host, port).catch((error) => {
    throw listenFailure(error, { host, port }, { host: '--host', port: option })
  })
  return `${host}:${port} is free`
}

async function checkGateway(config: Config): Promise<string | Finding> {
  if (config.gatewayUrl === undefined && (await isRunning(config))) return embeddedThere(config)
  const gateway = await obtainGateway(config, quiet()).catch((error: unknown) => {
    if (isDataInUse(error)) return undefined
    throw error
  })
  if (gateway === undefined) return embeddedThere(config)
  try {
    const { text, warnings } = await logIn(config, gateway)
    const mixed = mixedBrand(config)
    return { text, warnings: mixed === undefined ? warnings : [mixed, ...warnings] }
  } finally {
    await gateway.stop()
  }
}

function embeddedThere({ gatewayQuirks }: Config): string {
  return `embedded in the running dealgate, ${gatewayQuirks === 'none' ? 'without quirks' : `with the quirks ${gatewayQuirks}`}`
}

async function logIn(config: Config, gateway: GatewayInUse): Promise<Finding> {
  const pool = poolOf(config, gateway, quiet())
  try {
    const account = pool.for(gateway.account)
    const problem = await account.ready().catch(async (error: unknown) => {
      const mistake = await likelyMistake(config)
      throw mistake === undefined ? error : new Failure(mistake, { cause: error })
    })
    const features = Object.entries(await account.features()).filter(([, has]) => has)
    const kind =
      features.length > 0
        ? `it has ${features.map(([name]) => name).join(', ')}`
        : 'a legacy one: some requests take longer'
    const text = `${gateway.embedded ? 'the embedded one' : gateway.url} accepts the log-in; ${kind}`
    return { text, warnings: problem === undefined ? [] : [problem] }
  } finally {
    await pool.close()
  }
}

async function checkClock(config: Config): Promise<string | undefined> {
  if (config.gatewayUrl === undefined) return undefined
  const { headers } = await ask(config.gatewayUrl, {
    method: 'HEAD',
    timeoutMs: config.gatewayTimeoutMs,
    tls: gatewayTlsOf(config),
  })
  const theirs = Date.parse(headers.date ?? '')
  if (Number.isNaN(theirs)) return 'the gateway does not tell the time'
  const seconds = Math.round((Date.now() - theirs) / 1000)
  if (Math.abs(seconds) > MAX_SKEW_SECONDS) {
    throw new Failure(
      `this machine is ${Math.abs(seconds)} s ${seconds > 0 ? 'ahead of' : 'behind'} the gateway. Set both clocks, with NTP if possible.`,
    )
  }
  return `${Math.abs(seconds)} s from that of the gateway`
}

function listenOnce(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(port, host, () => server.close(() => resolve()))
  })
}

function quiet(): Logger {
  return createLogger({ level: 'silent' })
}
