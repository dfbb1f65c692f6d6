import { execFile } from 'node:child_process'
import { access, mkdir, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import type { Endpoint } from '../../test/suites/sign.js'
import { freePort, Program } from './program.js'
import { s3Requests } from './s3-requests.js'
import type { Subject } from './subject.js'

const run = promisify(execFile)
const KEYS = { accessKey: 'benchaccesskey', secretKey: 'benchsecretkey0123', region: 'us-east-1' }
const S3RVER = '3.7.1'
const VERSITYGW = 'v1.8.0'
const S3PROXY = '2.6.0'

interface Peer {
  readonly name: string
  /** The folder of its program; default the name. */
  readonly home?: string
  readonly version?: string
  readonly checks: string
  readonly durability: string
  /** Installs what is missing below the folder. Throws if that does not work. */
  install(folder: string): Promise<void>
  /** @param data an empty folder for objects */
  start(folder: string, data: string, port: number): Promise<Program>
  /** Where the program does not accept those of the others. */
  readonly keys?: Partial<typeof KEYS>
}

const NOT_SYNCED = 'not synced: a crash of the machine may lose it'

const PEERS: readonly Peer[] = [
  {
    name: 's3rver',
    version: S3RVER,
    checks: 'version 4, with a fixed key pair; not the hash of the body',
    durability: NOT_SYNCED,
    keys: { accessKey: 'S3RVER', secretKey: 'S3RVER' },
    async install(folder) {
      await mkdir(folder, { recursive: true })
      await writeFile(join(folder, 'package.json'), '{"private":true}')
      await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', `s3rver@${S3RVER}`], { cwd: folder })
    },
    async start(folder, data, port) {
      const script = join(folder, 'node_modules/s3rver/bin/s3rver.js')
      const program = Program.node([script, '-d', data, '-p', String(port), '-a', '127.0.0.1', '--silent'], {
        quiet: true,
      })
      await program.answers(port)
      return program
    },
  },
  {
    name: 'rclone serve s3',
    checks: 'version 4; not the hash of the body',
    durability: NOT_SYNCED,
    install: () => found('rclone'),
    async start(_, data, port) {
      const auth = `${KEYS.accessKey},${KEYS.secretKey}`
      const program = new Program(
        'rclone',
        [...['serve', 's3', '--addr', `127.0.0.1:${port}`, '--auth-key', auth, '--log-level', 'ERROR', data]],
        { quiet: true },
      )
      await program.answers(port)
      return program
    },
  },
  versitygw('versitygw', NOT_SYNCED, []),
  // Without --keep-alive it closes each connection after one answer.
  versitygw('versitygw --keep-alive', NOT_SYNCED, ['--keep-alive']),
  // It has no option that syncs. In a folder with the attribute S of ext4, each write of the system is a synced one.
  versitygw(
    'versitygw --keep-alive, synced',
    'synced by the attribute S of its folder',
    ['--keep-alive'],
    async (data) => {
      await run('chattr', ['+S', data])
    },
  ),
  {
    name: 's3proxy',
    version: S3PROXY,
    checks: 'version 4 and the hash of the body',
    durability: NOT_SYNCED,
    async install(folder) {
      await mkdir(folder, { recursive: true })
      const artifact = `-Dartifact=org.gaul:s3proxy:${S3PROXY}:jar:jar-with-dependencies`
      const plugin = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy'
      await run('mvn', ['-q', '-B', plugin, artifact, `-DoutputDirectory=${folder}`], { cwd: folder })
    },
    async start(folder, data, port) {
      const properties = {
        's3proxy.endpoint': `http://127.0.0.1:${port}`,
        's3proxy.authorization': 'aws-v2-or-v4',
        's3proxy.identity': KEYS.accessKey,
        's3proxy.credential': KEYS.secretKey,
        'jclouds.provider': 'filesystem',
        'jclouds.filesystem.basedir': data,
      }
      const file = join(folder, 's3proxy.conf')
      const lines = Object.entries(properties).map(([name, value]) => `${name}=${value}\n`)
      await writeFile(file, lines.join(''))
      const jar = join(folder, `s3proxy-${S3PROXY}-jar-with-dependencies.jar`)
      const program = new Program('java', ['-jar', jar, '--properties', file], { quiet: true })
      await program.answers(port)
      return program
    },
  },
]

function versitygw(
  name: string,
  durability: string,
  further: readonly string[],
  prepare?: (data: string) => Promise<void>,
): Peer {
  return {
    name,
    home: 'versitygw',
    version: VERSITYGW,
    checks: 'version 4 and the hash of the body',
    durability,
    async install(folder) {
      await mkdir(folder, { recursive: true })
      const path = `${process.env.PATH}${delimiter}/usr/local/go/bin`
      const env = { ...process.env, PATH: path, GOBIN: folder, GOTOOLCHAIN: 'local', CGO_ENABLED: '0' }
      await run('go', ['install', `github.com/versity/versitygw/cmd/versitygw@${VERSITYGW}`], { cwd: folder, env })
    },
    async start(folder, data, port) {
      await prepare?.(data)
      const keys = ['--access', KEYS.accessKey, '--secret', KEYS.secretKey]
      const args = [...keys, '--port', `127.0.0.1:${port}`, '--quiet', ...further, 'posix', data]
      const program = new Program(join(folder, 'versitygw'), args, { quiet: true })
      await program.answers(port)
      return program
    },
  }
}

interface StartedPeers {
  readonly subjects: (Subject & { readonly server: Endpoint; readonly version?: string })[]
  /** A sentence for each peer that is not here. */
  readonly absent: string[]
}

/**
 * Starts the S3 servers of others, each with a folder of its own.
 * @param installed where their programs are, or will be
 * @param install fetches missing ones from their registries
 * @param wanted their names; all of them by default
 */
export async function startPeers(
  folder: string,
  installed: string,
  install: boolean,
  wanted: readonly string[] = PEERS.map(({ name }) => name),
): Promise<StartedPeers> {
  const started: StartedPeers = { subjects: [], absent: [] }
  for (const peer of PEERS.filter(({ name }) => wanted.includes(name))) {
    // A folder for each version: another one is installed beside it.
    const home = join(installed, [peer.home ?? peer.name, peer.version].filter(Boolean).join('-').replaceAll(' ', '-'))
    try {
      if (install) await installOnce(peer, home)
      const data = join(folder, 'peers', peer.name.replaceAll(' ', '-'))
      await mkdir(data, { recursive: true })
      const port = await freePort()
      const program = await peer.start(home, data, port)
      const server = { ...KEYS, ...peer.keys, endpoint: `http://127.0.0.1:${port}` }
      const { name, checks, durability } = peer
      const processes = [{ name, program }]
      started.subjects.push({
        foreign: true,
        name,
        checks,
        durability,
        host: '127.0.0.1',
        port,
        processes,
        server,
        ...(peer.version !== undefined && { version: peer.version }),
        ...s3Requests(server),
      })
    } catch (error) {
      started.absent.push(
        `${peer.name}: ${String((error as Error).message)
          .split('\n')[0]
          ?.slice(0, 200)}`,
      )
    }
  }
  return started
}

async function installOnce(peer: Peer, home: string): Promise<void> {
  const stamp = join(home, '.installed')
  if (
    await access(stamp).then(
      () => true,
      () => false,
    )
  )
    return
  await peer.install(home)
  await mkdir(home, { recursive: true })
  await writeFile(stamp, '')
}

/** @throws Error if no folder of PATH has the program */
async function found(program: string): Promise<void> {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    if (
      await access(join(folder, program)).then(
        () => true,
        () => false,
      )
    )
      return
  }
  throw new Error(`${program} is not installed`)
}
