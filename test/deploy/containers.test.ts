import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { redis } from '../src/state/servers.js'
import { temporaryFolder } from '../support/content/folders.js'
import { endsWithUs } from '../support/server/child.js'
import { startCli } from '../support/server/cli.js'
import { lastingPort } from '../support/server/ports.js'
import { send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'
import { CHECKS, withoutChecks } from './checks.js'

const COMPOSE = 'deploy/compose'
const FILES = ['alone.yaml', 'three-proxies.yaml', 'three-of-everything.yaml']

interface Service {
  readonly image?: string
  readonly build?: { readonly context: string; readonly dockerfile: string }
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string | number>>
  readonly volumes?: readonly string[]
  readonly read_only?: boolean
  readonly depends_on?: readonly string[] | Readonly<Record<string, unknown>>
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>
  readonly volumes: Readonly<Record<string, unknown>>
}

const read = (name: string): Compose => parse(readFileSync(join(COMPOSE, name), 'utf8'), { merge: true })
const dockerfile = readFileSync('deploy/docker/Dockerfile', 'utf8')

t.test('the Dockerfile', async (t) => {
  const hadolint = join('.ci/venv/bin', 'hadolint')
  if (existsSync(hadolint)) {
    const { status, stdout } = spawnSync(hadolint, ['deploy/docker/Dockerfile'], { encoding: 'utf8' })
    t.same([status, stdout], [0, ''])
  }
  t.match(dockerfile, /^USER 1000:1000$/m)
  t.match(dockerfile, /^ENTRYPOINT \["node", /m)

  // The context of the build is what is not ignored.
  const context = temporaryFolder(t)
  const ignore = readFileSync('deploy/docker/Dockerfile.dockerignore', 'utf8')
  for (const [, path = ''] of ignore.matchAll(/^!(.*)$/gm)) {
    mkdirSync(dirname(join(context, path)), { recursive: true })
    cpSync(path, join(context, path), { recursive: true })
  }
  symlinkSync(resolve('node_modules'), join(context, 'node_modules'))
  const built = spawnSync(process.execPath, ['scripts/bundle.mjs'], { cwd: context, encoding: 'utf8' })
  if (!t.equal(built.status, 0, built.stderr)) return
  for (const [, from = ''] of dockerfile.matchAll(/^COPY --from=build (.*) \S+$/gm))
    for (const path of from.split(' ')) t.ok(existsSync(join(context, path.replace('/build/', ''))), path)

  const port = await lastingPort()
  const variables = [...dockerfile.matchAll(/\b(DEALGATE_\w+|NODE_ENV)=(\S+)/g)].map(([, name, value]) => [name, value])
  const env = {
    ...Object.fromEntries(variables),
    PATH: process.env.PATH,
    DEALGATE_DATA: join(context, 'data'),
    DEALGATE_PORT: String(port),
    DEALGATE_CONSOLE_PORT: '0',
    DEALGATE_GATEWAY_PORT: '0',
    DEALGATE_PLATFORM_PORT: '0',
    DEALGATE_PAYMENT_PORT: '0',
  }
  const health = () => spawnSync(process.execPath, ['deploy/docker/health.mjs'], { env }).status
  t.equal(health(), 1)
  const server = spawn(process.execPath, ['dist/app/cli.js', 'serve'], { cwd: context, env, stdio: 'ignore' })
  endsWithUs(server)
  t.teardown(() => server.kill('SIGKILL'))
  await until('the container would be healthy', () => health() === 0)
  const ended = once(server, 'exit')
  server.kill('SIGTERM')
  t.same(await ended, [0, null])
})

t.test('a server in a container, by systemd and by npm start has the same small young generation', (t) => {
  const files = ['deploy/docker/Dockerfile', 'deploy/systemd/dealgate.service', 'package.json']
  const sizes = files.map((file) => /--max-semi-space-size=(\d+)/.exec(readFileSync(file, 'utf8'))?.[1])
  t.same(sizes, ['2', '2', '2'])
  const arenas = files.map((file) => /\bMALLOC_ARENA_MAX=(\d+)/.exec(readFileSync(file, 'utf8'))?.[1])
  t.same(arenas, ['2', '2', undefined], 'what npm starts has the environment of its user')
  t.end()
})

t.test('the compose files name what there is', async (t) => {
  for (const name of FILES) {
    const { services, volumes } = read(name)
    const used = new Set<string>()
    for (const [service, { build, image, volumes: mounts = [], depends_on = [], read_only }] of Object.entries(
      services,
    )) {
      if (build) t.ok(existsSync(join(COMPOSE, build.context, build.dockerfile)), `${name}: ${service}`)
      if (image === 'dealgate') t.equal(read_only, true, `${name}: ${service} has a read-only root`)
      for (const other of Array.isArray(depends_on) ? depends_on : Object.keys(depends_on))
        t.ok(other in services, `${name}: ${service} depends on ${other}`)
      for (const [from = ''] of mounts.map((mount) => mount.split(':'))) {
        if (from.startsWith('.')) t.ok(existsSync(join(COMPOSE, from)), `${name}: ${from}`)
        else used.add(from)
      }
    }
    t.same([...used].sort(), Object.keys(volumes).sort(), `${name}: volumes`)
  }
})

t.test('Docker Compose can read the files', { skip: withoutChecks() }, async (t) => {
  const names = ['S3_SECRET_KEY', 'GATEWAY_SECRET_KEY', 'SEALING_KEY', 'DATABASE_PASSWORD']
  names.push('STORE_KEY_ID', 'STORE_SECRET_KEY', 'STORE_RPC_SECRET')
  const secrets = Object.fromEntries(names.map((name) => [name, 'a']))
  const check = (name: string, env: Record<string, string>) =>
    spawnSync(CHECKS, ['compose', join(COMPOSE, name)], { encoding: 'utf8', env })
  for (const name of FILES) {
    const { status, stdout, stderr } = check(name, secrets)
    t.equal(status, 0, stderr)
    t.same(stdout.trim().split('\n').sort(), Object.keys(read(name).services).sort(), name)
  }
  t.match(check('three-proxies.yaml', {}).stderr, /put it into \.env/, 'a secret is missing')
})

const NGINX = ['/usr/sbin/nginx', '/usr/bin/nginx'].find(existsSync)

t.test(
  'three proxies, Redis and nginx run with what the compose file says',
  {
    skip: redis.skip || (NGINX === undefined && 'nginx is not installed'),
  },
  async (t) => {
    const { services } = read('three-proxies.yaml')
    const folder = temporaryFolder(t)
    const ports = { gateway: await lastingPort(), platform: await lastingPort(), payment: await lastingPort() }
    const store = await redis.start(services.redis?.command?.slice(1))
    t.teardown(() => store.stop())
    const secret = 'a'.repeat(64)
    const rewritten = (value: string) =>
      value
        .replace('http://services:9100', `http://127.0.0.1:${ports.gateway}`)
        .replace('http://services:9200', `http://127.0.0.1:${ports.platform}`)
        .replace('http://services:9300', `http://127.0.0.1:${ports.payment}`)
        .replace('redis://redis:6379', store.url)
        .replace('0.0.0.0', '127.0.0.1')
        .replace('172.16.0.0/12', '127.0.0.1')
        .replace(/\$\{S3_SECRET_KEY:[^}]*\}|\$\{GATEWAY_SECRET_KEY:[^}]*\}/, secret.slice(0, 40))
        .replace(/\$\{SEALING_KEY:[^}]*\}/, secret)
    // Kubo is not installed here: deals are made in the embedded network.
    const environmentOf = (name: string) =>
      Object.fromEntries(
        Object.entries(services[name]?.environment ?? {})
          .filter(([variable]) => variable.startsWith('DEALGATE_') && variable !== 'DEALGATE_KUBO_API')
          .map(([variable, value]) => [variable, rewritten(String(value))]),
      )
    const start = <Line>(name: string, env: Record<string, string>) =>
      startCli<Line>(t, services[name]?.command ?? [], {
        ...environmentOf(name),
        DEALGATE_DATA: join(folder, name),
        ...env,
      })
    await start('services', {
      DEALGATE_GATEWAY_PORT: String(ports.gateway),
      DEALGATE_PLATFORM_PORT: String(ports.platform),
      DEALGATE_PAYMENT_PORT: String(ports.payment),
    })
    let conf = readFileSync(join(COMPOSE, 'nginx.conf'), 'utf8').replaceAll('/tmp/', `${folder}/`)
    for (const n of [1, 2, 3]) {
      const [port, pages] = [await lastingPort(), await lastingPort()]
      await start(`proxy-${n}`, { DEALGATE_PORT: String(port), DEALGATE_CONSOLE_PORT: String(pages) })
      conf = conf.replace(`proxy-${n}:9000`, `127.0.0.1:${port}`).replace(`proxy-${n}:9001`, `127.0.0.1:${pages}`)
    }
    const [port, pages] = [await lastingPort(), await lastingPort()]
    conf = conf.replace('listen 9000', `listen 127.0.0.1:${port}`).replace('listen 9001', `listen 127.0.0.1:${pages}`)
    writeFileSync(join(folder, 'nginx.conf'), conf)
    const args = ['-p', folder, '-c', join(folder, 'nginx.conf'), '-g', 'daemon off;']
    const nginx = spawn(NGINX ?? '', args, { stdio: 'ignore' })
    endsWithUs(nginx)
    const ended = once(nginx, 'exit')
    t.teardown(async () => {
      nginx.kill('SIGTERM')
      await ended
    })
    const endpoint = `http://127.0.0.1:${port}`
    await until(
      'nginx answers',
      async () => (await fetch(`${endpoint}/-/ready`).catch(() => undefined))?.status === 200,
    )
    const server = { endpoint, accessKey: 'dealgate', secretKey: secret.slice(0, 40), region: 'us-east-1' }
    const statusOf = async (method: string, target: string, body?: Buffer) =>
      (await send(server, { method, target, ...(body && { body }) })).status
    t.equal(await statusOf('PUT', '/photos'), 200)
    t.equal(await statusOf('PUT', '/photos/cat', Buffer.from('a cat')), 200)
    for (let n = 0; n < 6; n++) {
      t.equal(await statusOf('GET', '/photos/cat'), 200)
      t.equal((await fetch(`http://127.0.0.1:${pages}/main.js`)).status, 200, 'the console')
    }
  },
)
