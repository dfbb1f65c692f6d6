import { type ChildProcess, type ExecFileSyncOptions, execFileSync, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { missing } from '../../support/programs/run.js'
import { whenWeEnd } from '../../support/server/child.js'
import { lastingPort } from '../../support/server/ports.js'
import { until } from '../../support/waiting.js'

export interface StateServer {
  readonly url: string
  readonly pid: number
  stop(): Promise<void>
}

export interface PostgresServer extends StateServer {
  /** Ends it as an administrator (SIGINT) or a crash (SIGQUIT) does, and starts it with its data at the same place. */
  restart(signal: 'SIGINT' | 'SIGQUIT'): Promise<void>
  /** Ends it with SIGKILL, for good. */
  kill9(): Promise<void>
  /** Starts a copy that follows it. From then on it acknowledges only what the copy has. */
  standby(): Promise<Standby>
}

interface Standby extends StateServer {
  /** Makes it a primary. */
  promote(): Promise<void>
}

export interface StateServerKind<Server extends StateServer = StateServer> {
  readonly name: 'redis' | 'postgres'
  /** Why it cannot be tried here; false when it can. Missing servers are failures with REQUIRE_CLIENTS=1. */
  readonly skip: string | false
  /** @param options further ones of the program */
  start(options?: readonly string[]): Promise<Server>
}

/** How a program of PostgreSQL is run. */
type RunAs = Pick<ExecFileSyncOptions, 'uid' | 'gid' | 'cwd' | 'env' | 'stdio'>

const redisProgram = findProgram('redis-server')
const postgresFolder = findPostgres()

export const redis: StateServerKind = {
  name: 'redis',
  skip: redisProgram === undefined && missing('redis-server is not installed'),
  async start(options = []) {
    const port = await lastingPort()
    const folder = mkdtempSync(join(tmpdir(), 'dealgate-redis-'))
    const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--appendonly', 'yes', ...options]
    const child = spawn(redisProgram ?? '', args, { stdio: 'ignore' })
    await listening(port, child, folder)
    return {
      url: `redis://127.0.0.1:${port}`,
      pid: child.pid ?? 0,
      // While Redis writes its first append-only file, and a replica does after each full sync, it ignores SIGTERM:
      // "Writing initial AOF. Can't exit." (finishShutdown in its server.c). The data goes away anyway.
      stop: () => stop(child, folder, 'SIGKILL'),
    }
  },
}

/** Name of a standby at its primary. */
const STANDBY = 'standby'

export const postgres: StateServerKind<PostgresServer> = {
  name: 'postgres',
  skip: postgresFolder === undefined && missing('PostgreSQL is not installed'),
  async start(options = []) {
    const server = await startPostgres(makeCluster, options)
    return { ...server, standby: () => startStandby(server.url, options) }
  },
}

/** @param make makes the files of the server in a folder */
async function startPostgres(make: (data: string, run: RunAs) => void, further: readonly string[]) {
  const port = await lastingPort()
  const folder = mkdtempSync(join(tmpdir(), 'dealgate-postgres-'))
  // PostgreSQL refuses to run as root.
  const account = process.getuid?.() === 0 ? idsOf('postgres') : undefined
  if (account) chownSync(folder, account.uid, account.gid)
  const data = join(folder, 'data')
  // initdb refuses a locale of the user's own that is not installed.
  const env = { ...process.env, LC_ALL: 'C' }
  const run = { ...account, cwd: folder, env, stdio: 'ignore' } as const
  try {
    make(data, run)
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
  // No socket in a folder: its path may be longer than there is room for.
  const options = ['-D', data, '-p', String(port), '-c', 'listen_addresses=127.0.0.1', '-k', '', ...further]
  const url = `postgres://dealgate@127.0.0.1:${port}/postgres`
  const begin = async () => {
    const child = spawn(postgresProgram('postgres'), options, run)
    await listening(port, child, folder)
    await answering(url)
    return child
  }
  let child = await begin()
  return {
    url,
    pid: child.pid ?? 0,
    // SIGINT: the fast shutdown, which does not wait for clients.
    stop: () => stop(child, folder, 'SIGINT'),
    kill9: () => end(child, 'SIGKILL'),
    async restart(signal: 'SIGINT' | 'SIGQUIT') {
      await end(child, signal)
      child = await begin()
    },
  }
}

async function startStandby(primary: string, options: readonly string[]): Promise<Standby> {
  const from = `${primary}?application_name=${STANDBY}`
  const copy = ['-d', from, '--write-recovery-conf', '--checkpoint=fast']
  const standby = await startPostgres(
    (data, run) => execFileSync(postgresProgram('pg_basebackup'), ['-D', data, ...copy], run),
    options,
  )
  const asPrimary = new pg.Client(primary)
  await asPrimary.connect()
  await asPrimary.query(`ALTER SYSTEM SET synchronous_standby_names = '${STANDBY}'`)
  await asPrimary.query('SELECT pg_reload_conf()')
  const followers = "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'"
  await until('the standby follows', async () => (await asPrimary.query(followers)).rowCount === 1)
  await asPrimary.end()
  const { url, pid, stop } = standby
  return {
    ...{ url, pid, stop },
    async promote() {
      const client = new pg.Client(url)
      await client.connect()
      await client.query('SELECT pg_promote()')
      await client.end()
    },
  }
}

/** A program of PostgreSQL, such as pg_dump. */
export function postgresProgram(name: string): string {
  return join(postgresFolder ?? '', name)
}

/** Creates the files of a database. */
function makeCluster(data: string, run: RunAs): void {
  execFileSync(postgresProgram('initdb'), ['-D', data, '-U', 'dealgate', '-A', 'trust', '-N'], run)
}

/** The program in PATH or in one of these folders. */
export function findProgram(name: string, folders: readonly string[] = []): string | undefined {
  return [...(process.env.PATH ?? '').split(delimiter), ...folders]
    .map((folder) => join(folder, name))
    .find((file) => existsSync(file))
}

/** The folder of the programs of PostgreSQL, which Debian keeps out of PATH. */
function findPostgres(): string | undefined {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root) ? readdirSync(root).map((version) => join(root, version, 'bin')) : []
  const initdb = findProgram('initdb', versions)
  // A link in PATH need not stand beside links to the other programs.
  return initdb && dirname(realpathSync(initdb))
}

function idsOf(account: string): { uid: number; gid: number } {
  const id = (flag: string) => Number(execFileSync('id', [flag, account], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

async function listening(port: number, child: ChildProcess, folder: string): Promise<void> {
  const forget = whenWeEnd(() => {
    child.kill('SIGQUIT')
    rmSync(folder, { recursive: true, force: true })
  })
  child.once('exit', forget)
  for (;;) {
    if (child.exitCode !== null || child.signalCode !== null) {
      rmSync(folder, { recursive: true, force: true })
      throw new Error(`the server ended with ${child.exitCode ?? child.signalCode}`)
    }
    const connected = await new Promise<boolean>((resolve) => {
      const socket = createConnection(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false))
      socket.on('connect', () => socket.destroy())
    })
    if (connected) return
    await sleep(50)
  }
}

/** It takes connections a moment before it answers queries. */
async function answering(url: string): Promise<void> {
  for (;;) {
    const client = new pg.Client(url)
    client.on('error', () => {})
    try {
      await client.connect()
      await client.query('SELECT 1')
      return
    } catch (error) {
      // cannot_connect_now: https://www.postgresql.org/docs/current/errcodes-appendix.html
      if ((error as { code?: string }).code !== '57P03') throw error
      await sleep(50)
    } finally {
      await client.end().catch(() => {})
    }
  }
}

async function stop(child: ChildProcess, folder: string, signal: NodeJS.Signals): Promise<void> {
  await end(child, signal)
  // What a killed server has begun may end later than it.
  rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill(signal)
  await ended
}
