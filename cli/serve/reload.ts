import { closeSync, openSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { makeFolders } from '../../common/files/private-file.js'
import { type Logger, setLogLevel } from '../../common/log.js'
import { openingFailure } from '../../common/opening-failure.js'
import type { Credentials, Identity } from '../../src/api/identity.js'
import type { AuditEntry } from '../../src/server/audit.js'
import type { Reloaded } from '../../src/server/server-plugin.js'
import { describeError, Failure } from '../command.js'
import { type Config, flagOf, type Option, type OptionName, optionNames, options, readAgain } from '../config/config.js'
import { credentialsPath } from '../keys/credentials-file.js'
import { type ObtainedKeys, obtainKeys } from '../keys/keys.js'
import {
  CredentialsError,
  type CredentialsFile,
  type CredentialsFileOptions,
  openCredentialsFile,
} from '../process/identities-file.js'
import { openLogFile } from './observability.js'

/** A change that is ready. One of the two is called, once. */
export interface PreparedReload {
  /** Uses it from now on. Requests in progress continue with what they began with. Never rejects. */
  apply(): Promise<void>
  /** Gives it up. Never rejects. */
  discard(): Promise<void>
}

/** Checks a configuration, and prepares it. Rejects for one that cannot be used. */
export type Prepare = (next: Config) => Promise<PreparedReload>

interface ReloaderOptions {
  /** The configuration that was read at the start. */
  readonly config: Config
  readonly log: Logger
  readonly prepare: Prepare
}

/** Reads the configuration of a running server again: all of it is used, or nothing. One reload at a time. */
export class Reloader {
  readonly #first: Config
  readonly #log: Logger
  readonly #prepare: Prepare
  #running: Config
  #last: Promise<unknown> = Promise.resolve()

  constructor({ config, log, prepare }: ReloaderOptions) {
    this.#first = config
    this.#running = config
    this.#log = log
    this.#prepare = prepare
  }

  /**
   * The configuration in use, once reloads in progress have ended.
   * @param onRead called before any later reload begins
   */
  current(onRead: () => void): Promise<Config> {
    const read = this.#last.then(() => {
      onRead()
      return this.#running
    })
    this.#last = read
    return read
  }

  /**
   * Rejects, without any change, for a configuration that cannot be used. The log has the outcome.
   * @param cause `SIGHUP`, or who asked for it
   * @param requestId of the request that asked for it
   */
  reload(cause: string, requestId?: string): Promise<Reloaded> {
    const done = this.#last.then(() => this.#reload(cause, requestId))
    this.#last = done.catch(() => {})
    return done
  }

  async #reload(cause: string, requestId: string | undefined): Promise<Reloaded> {
    try {
      const { next, changed, needRestart } = changesOf(this.#running, readAgain(this.#first))
      const prepared = await this.#prepare(next)
      await prepared.apply()
      this.#running = next
      setLogLevel(this.#log, next.logLevel)
      const facts = { requestId, cause, changed: flagsOf(changed), needRestart: flagsOf(needRestart) }
      this.#log.info(facts, 'reloaded the configuration')
      if (needRestart.length > 0)
        this.#log.warn(
          { requestId, options: facts.needRestart },
          'these options have changed: restart the server to use them',
        )
      return { changed: facts.changed, needRestart: facts.needRestart }
    } catch (error) {
      this.#log.error(
        { requestId, cause, reason: describeError(error) },
        'could not reload the configuration: nothing has changed',
      )
      throw error
    }
  }
}

function flagsOf(names: readonly OptionName[]): string[] {
  return names.map(flagOf)
}

interface Changes {
  /** What the server uses when the changes are applied. */
  readonly next: Config
  /** Options of `next` that differ from those in use. */
  readonly changed: readonly OptionName[]
  /** Options that differ, and that `next` has as they are in use. */
  readonly needRestart: readonly OptionName[]
}

/**
 * Separates the changes that a running server can make from the others.
 * @param running in use
 * @param read from the sources
 */
function changesOf(running: Config, read: Config): Changes {
  const different = optionNames.filter((name) => !isDeepStrictEqual(running[name], read[name]))
  const mayChange = (name: OptionName) =>
    (options[name] as Option).live === true && (!isTls(name) || isSecure(running) === isSecure(read))
  const changed = different.filter(mayChange)
  const next = { ...running, ...Object.fromEntries(changed.map((name) => [name, read[name]])) }
  return { next, changed, needRestart: different.filter((name) => !mayChange(name)) }
}

function isTls(name: OptionName): boolean {
  return name === 'tlsCert' || name === 'tlsKey'
}

function isSecure({ tlsCert }: Config): boolean {
  return tlsCert.length > 0
}

/**
 * Calls back at each SIGHUP. A terminal that is closed sends it, too, and the process ends then, as it does without a
 * listener: what it has acknowledged is on the disk, and an end in order would write to the terminal.
 * @returns ends that
 */
function onHangup(reload: () => void): () => void {
  const inTerminal = process.stdin.isTTY === true
  const onSignal = () => {
    if (!inTerminal || !terminalIsGone()) return reload()
    end()
    process.kill(process.pid, 'SIGHUP')
  }
  const end = () => process.off('SIGHUP', onSignal)
  process.on('SIGHUP', onSignal)
  return end
}

/** A process without its terminal cannot open it: https://man7.org/linux/man-pages/man4/tty.4.html */
function terminalIsGone(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return false
  } catch {
    return true
  }
}

/** Passes SIGHUP on, once there is a server to reload. Before that, the server reads its configuration anyway. */
export class Hangups {
  readonly #log: Logger
  #reload: (() => Promise<unknown>) | undefined
  readonly close: () => void

  constructor(log: Logger) {
    this.#log = log
    this.close = onHangup(() => this.#received())
  }

  pass(reload: () => Promise<unknown>): void {
    this.#reload = reload
  }

  #received(): void {
    if (this.#reload) this.#reload().catch(() => {})
    else this.#log.warn('SIGHUP came while the server was starting, and is ignored')
  }
}

interface Opened {
  readonly owner: Identity
  readonly others: CredentialsFile
}

/** The S3 key pairs of a server: that of its owner, and those of the credentials file. */
export class Identities {
  readonly #log: Logger
  readonly #policyProblem: CredentialsFileOptions['policyProblem']
  #opened: Opened | undefined

  constructor(log: Logger, policyProblem: CredentialsFileOptions['policyProblem']) {
    this.#log = log
    this.#policyProblem = policyProblem
  }

  /** Throws Failure. */
  async open(config: Config): Promise<ObtainedKeys> {
    const keys = await obtainKeys(config)
    this.#opened = await this.#read(config, keys)
    return keys
  }

  /** Access key id of the owner, in force. */
  get owner(): string {
    return this.#opened?.owner.accessKeyId ?? ''
  }

  readonly find: Credentials = (accessKeyId) => {
    const { owner, others } = this.#opened ?? {}
    return accessKeyId === owner?.accessKeyId ? owner : others?.find(accessKeyId)
  }

  /** Reads the key pairs of another configuration. Throws Failure. */
  async prepare(next: Config): Promise<PreparedReload> {
    const opened = await this.#read(next, await obtainKeys(next))
    return {
      apply: async () => {
        const former = this.#opened
        this.#opened = opened
        former?.others.close()
      },
      discard: async () => opened.others.close(),
    }
  }

  close(): void {
    this.#opened?.others.close()
  }

  /** A configured file must exist; the default one is optional. */
  async #read(config: Config, { accessKey, secretKey }: ObtainedKeys): Promise<Opened> {
    const file = credentialsPath(config)
    const owner = { accessKeyId: accessKey, secretAccessKey: secretKey }
    try {
      if (config.credentialsFile === undefined) makeFolders(config.data)
      const optional = config.credentialsFile === undefined
      const following = { log: this.#log, policyProblem: this.#policyProblem }
      return { owner, others: openCredentialsFile({ file, optional, owner: accessKey, ...following }) }
    } catch (error) {
      const option = config.credentialsFile === undefined ? undefined : 'name another file with --credentials-file'
      const unusable = openingFailure(file, error, option)
      if (unusable !== undefined) throw new Failure(`Cannot use the credentials file: ${unusable}`, { cause: error })
      const advice = error instanceof CredentialsError ? ' `dealgate keys add` makes such a file.' : ''
      throw new Failure(`Cannot use the credentials file: ${(error as Error).message}.${advice}`, { cause: error })
    }
  }
}

/** A change that needs nothing but this function, which must not throw. */
export function ready(apply: () => void): PreparedReload {
  return { apply: async () => apply(), discard: async () => {} }
}

/** Prepares all of these changes. If one cannot be prepared, the others are discarded, and this rejects. */
export async function prepareAll(changes: readonly (() => Promise<PreparedReload>)[]): Promise<PreparedReload> {
  const outcomes = await Promise.allSettled(changes.map((prepare) => prepare()))
  const prepared = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
  const discard = async () => {
    await Promise.all(prepared.map((each) => each.discard()))
  }
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  if (failed) {
    await discard()
    throw failed.reason
  }
  return {
    async apply() {
      for (const each of prepared) await each.apply()
    },
    discard,
  }
}

interface RecordReloadOptions {
  readonly config: Pick<Config, 'auditLog'>
  readonly log: Logger
}

/** Reloads after a signal, and records it in the audit log. That of `POST /-/reload` has an entry as a request. */
export async function recordReload(
  { config, log }: RecordReloadOptions,
  reload: () => Promise<Reloaded>,
): Promise<void> {
  const outcome = await reload().then(
    ({ changed }) => ({ outcome: 'ok', changed }),
    () => ({ outcome: 'failed' }),
  )
  const { auditLog } = config
  if (auditLog === undefined) return
  const audit: AuditEntry = { time: new Date().toISOString(), action: 'SIGHUP', ...outcome }
  try {
    const file = await openLogFile('--audit-log', auditLog)
    await file.write(JSON.stringify(audit), true).finally(() => file.close())
  } catch (err) {
    log.error({ err, audit }, 'the audit log cannot be written')
  }
}
