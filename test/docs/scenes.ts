import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { createClient } from '@keyv/redis'
import type { Test } from 'tap'
import { startRealGateway } from '../clients/real-gateway/real-gateway.js'
import { haproxy } from '../src/state/balancers.js'
import { postgres, redis } from '../src/state/servers.js'
import { startGateway } from '../support/gateway/embedded.js'
import type { GatewayAddress } from '../support/gateway/gateway-address.js'
import { isInstalled } from '../support/programs/run.js'
import { lastingPort } from '../support/server/ports.js'
import { WebhookReceiver } from '../support/webhook-receiver.js'
import { scriptOf } from './read-page.js'

/** What a page takes to be there, beside a server that was just started over an empty data folder. */
export interface Scene {
  /** Addresses and secrets that only a reader knows, by the examples that the page has in their place. */
  readonly rewrite?: Readonly<Record<string, string>>
  /** Further variables of every command; an empty one counts as absent for dealgate. */
  readonly env?: Readonly<Record<string, string>>
  /** The page starts its server itself. */
  readonly unserved?: true
  /** Runs once the server is up, before the first command. */
  readonly begun?: () => Promise<void>
  /** Why the page cannot be tried here. */
  readonly skip?: string
}

type MakeScene = (t: Test, folder: string) => Promise<Scene>

const NGINX = ['/usr/sbin/nginx', '/usr/bin/nginx']

/** The page gives its servers ports of its own. */
const OWN_PORTS = {
  ...{ DEALGATE_PORT: '', DEALGATE_CONSOLE_PORT: '' },
  ...{ DEALGATE_GATEWAY_PORT: '', DEALGATE_PLATFORM_PORT: '', DEALGATE_PAYMENT_PORT: '' },
}

/** In place of the package of the page, which the tests do not install. */
const SDK = 'class NodeSDK { start() {} }'

/** By page. Pages that are absent need nothing else than the server. */
export const scenes: Readonly<Record<string, MakeScene>> = {
  'README.md': async () => ({ unserved: true }),
  'docs/install.md': async () => ({ unserved: true }),
  'docs/limits.md': async () => ({ unserved: true }),
  'docs/plugins.md': async () => ({ unserved: true }),
  'docs/reference/commands.md': async () => ({ unserved: true }),
  'docs/guides/five-minutes.md': async () => ({ unserved: true }),
  'docs/guides/private-archive.md': async (t, folder) => {
    endLeft(t, folder)
    return isInstalled('age') ? { unserved: true } : { skip: 'age is not installed' }
  },
  'docs/guides/before-your-gateway.md': async (t) => behind('https://gateway.example', await startGateway(t, 'legacy')),
  'docs/guides/ask-your-archive.md': async (_, folder) => {
    const python = resolve('.ci/clients/bin/python3')
    if (!existsSync(python)) return { skip: 'DuckDB is not installed (.ci/run)' }
    const page = await readFile('docs/guides/ask-your-archive.md', 'utf8')
    await writeFile(join(folder, 'ask.py'), /```python\n([\s\S]*?)```/.exec(page)?.[1] ?? '')
    return { unserved: true, rewrite: { 'python3 ask.py': `${python} ask.py` } }
  },
  'docs/guides/browser-upload.md': async (_, folder) => {
    await writeFile(join(folder, 'sign-form.mjs'), scriptOf(await readFile('docs/guides/browser-upload.md', 'utf8')))
    return {}
  },
  'docs/guides/embed-in-express.md': async (_, folder) => {
    const page = await readFile('docs/guides/embed-in-express.md', 'utf8')
    const port = String(await lastingPort())
    await writeFile(join(folder, 'main.mjs'), scriptOf(page).replace('8080', port))
    return { unserved: true, rewrite: { '127.0.0.1:8080': `127.0.0.1:${port}` } }
  },
  'docs/guides/three-proxies.md': async (t, folder) => {
    const missing = redis.skip || (!NGINX.some(existsSync) && 'nginx is not installed')
    if (missing) return { skip: missing }
    endLeft(t, folder)
    const rewrite: Record<string, string> = {}
    for (const port of ['9001', '9002', '9003', '6379']) rewrite[port] = String(await lastingPort())
    const [gateway, balancer] = [String(await lastingPort()), String(await lastingPort())]
    Object.assign(rewrite, { '--gateway-port 9100': `--gateway-port ${gateway} --platform-port 0 --payment-port 0` })
    Object.assign(rewrite, { '127.0.0.1:9100': `127.0.0.1:${gateway}`, '127.0.0.1:9000': `127.0.0.1:${balancer}` })
    const [, configuration = ''] =
      /```nginx\n([\s\S]*?)```/.exec(await readFile('docs/guides/three-proxies.md', 'utf8')) ?? []
    const rewritten = Object.entries(rewrite).reduce((text, [from, to]) => text.replaceAll(from, to), configuration)
    await writeFile(join(folder, 'nginx.conf'), rewritten)
    return { unserved: true, rewrite, env: OWN_PORTS }
  },
  'docs/guides/three-of-everything.md': async (t, folder) => {
    const missing = postgres.skip || haproxy.skip
    const store = missing ? undefined : await startRealGateway(t, 1)
    if (store === undefined) return { skip: missing || 'the store is not built' }
    const { url, stop } = await postgres.start(['-c', 'max_connections=300'])
    t.teardown(stop)
    endLeft(t, folder)
    const { endpoint, accessKey, secretKey } = store.s3
    const rewrite: Record<string, string> = {
      'postgres://dealgate@db.example.com/dealgate': url,
      'https://store.example.com': endpoint,
      'AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=…': `AWS_ACCESS_KEY_ID=${accessKey} AWS_SECRET_ACCESS_KEY=${secretKey}`,
    }
    for (const first of [9000, 9100, 9200, 9300])
      for (let port = first; port < first + 4; port++) rewrite[port] = await portUnlike(/9[0-3]0[0-3]/)
    for (const first of [9000, 9001, 9100, 9200, 9300]) rewrite[`127.0.0.1:${first}`] = `127.0.0.1:${rewrite[first]}`
    const page = await readFile('docs/guides/three-of-everything.md', 'utf8')
    const [, configuration = ''] = /```haproxy\n([\s\S]*?)```/.exec(page) ?? []
    const rewritten = Object.entries(rewrite).reduce((text, [from, to]) => text.replaceAll(from, to), configuration)
    await writeFile(join(folder, 'haproxy.cfg'), rewritten)
    return { unserved: true, rewrite, env: OWN_PORTS }
  },
  'docs/guides/write-a-plugin.md': async (_, folder) => {
    const page = await readFile('docs/guides/write-a-plugin.md', 'utf8')
    for (const [index, name] of ['greet', 'digest'].entries()) {
      const plugin = join(folder, name)
      await mkdir(plugin)
      await writeFile(join(plugin, 'package.json'), '{"type": "module"}')
      await writeFile(join(plugin, 'index.js'), scriptOf(page, index))
    }
    return { unserved: true }
  },
  'docs/existing-gateways.md': async (t) => {
    const gateway = await startRealGateway(t, 1)
    if (!gateway) return { skip: 'the real gateway is not built' }
    return behind('http://minio.example:9000', gateway)
  },
  'docs/notifications.md': async (t) => {
    const { url } = await WebhookReceiver.start(t)
    return { unserved: true, rewrite: { 'https://hooks.example': url } }
  },
  'docs/observability.md': async (_, folder) => {
    const page = await readFile('docs/observability.md', 'utf8')
    await writeFile(
      join(folder, 'tracing.mjs'),
      scriptOf(page).replace("import { NodeSDK } from '@opentelemetry/sdk-node'", SDK),
    )
    const port = String(await lastingPort())
    const rewrite = { 'metrics-port 9400': `metrics-port ${port}`, '127.0.0.1:9400': `127.0.0.1:${port}` }
    return { unserved: true, rewrite }
  },
  'docs/operations.md': async (t) => behind('https://gateway.example', await startGateway(t, 'legacy')),
  'docs/state.md': async (t) => {
    if (redis.skip) return { skip: redis.skip }
    const { url, stop } = await redis.start()
    t.teardown(stop)
    return { env: { DEALGATE_STATE: url }, rewrite: { 'redis://127.0.0.1:6379': url }, begun: () => empty(url) }
  },
}

/** Ends what the page has started, and prints the ends of its logs, if a command of it fails. */
function endLeft(t: Test, folder: string): void {
  t.teardown(async () => {
    const names = await readdir(folder)
    for (const name of t.passing() ? [] : names.filter((name) => name.endsWith('.log')))
      t.comment(`${name}:\n${(await readFile(join(folder, name), 'utf8')).slice(-2000)}`)
    for (const name of names.filter((name) => name.endsWith('.pid'))) {
      try {
        process.kill(Number(await readFile(join(folder, name), 'utf8')), 'SIGKILL')
      } catch {
        // It has ended.
      }
    }
  })
}

/** A free port whose digits are not taken for those of a page. */
async function portUnlike(digits: RegExp): Promise<string> {
  const port = String(await lastingPort())
  return digits.test(port) ? portUnlike(digits) : port
}

/**
 * A server that the page starts before a gateway of the reader's, which stands on the page with an example of an
 * address.
 */
function behind(address: string, { url, accessKey, secretKey }: GatewayAddress): Scene {
  return {
    unserved: true,
    rewrite: {
      [address]: url,
      'DEALGATE_GATEWAY_ACCESS_KEY=…': `DEALGATE_GATEWAY_ACCESS_KEY=${accessKey}`,
      'DEALGATE_GATEWAY_SECRET_KEY=…': `DEALGATE_GATEWAY_SECRET_KEY=${secretKey}`,
    },
    // The port of an embedded gateway is refused beside the address of another.
    env: { DEALGATE_GATEWAY_PORT: '', DEALGATE_PLATFORM_PORT: '', DEALGATE_PAYMENT_PORT: '' },
  }
}

/** The store loses all of its records. */
async function empty(url: string): Promise<void> {
  const client = createClient({ url })
  await client.connect()
  await client.flushAll()
  await client.close()
}
