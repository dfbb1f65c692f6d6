import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import type { S3Store } from '../../services/gateway/s3-store.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { Between } from '../../support/gateway/between.js'
import { Command, stopAtEnd } from '../../support/server/cli.js'
import { lastingPort } from '../../support/server/ports.js'
import { type Hanging, startHanging } from './hanging.js'

/** One of several processes of the embedded services. */
export interface OneGateway {
  readonly pid: number
  /** Its way to PostgreSQL. */
  readonly way: Hanging
  kill9(): Promise<void>
  start(): Promise<void>
}

export interface Gateways {
  /** A balancer before those that run, which knows nothing of them: each request goes to any. */
  readonly between: Between
  readonly all: readonly OneGateway[]
  /** The data folder of all. */
  readonly data: string
}

interface GatewayLine {
  readonly accessKey: string
  readonly secretKey?: string
}

/** Starts `dealgate services` so often, over one PostgreSQL database and one data folder, until the test ends. */
export async function startGateways(
  t: Test,
  count: number,
  { database, store }: { readonly database: string; readonly store?: S3Store | undefined },
): Promise<Gateways> {
  const data = temporaryFolder(t)
  const bodies = store && [
    ...['--bodies', store.bodies.url],
    ...['--bodies-credentials-file', store.bodies.credentialsFile ?? ''],
  ]
  const started = await Promise.all(
    Array.from({ length: count }, async () => {
      const [port, way] = [await lastingPort(), await startHanging(t, database)]
      const args = ['services', '--data', data, '--gateway-port', String(port), ...(bodies ?? [])]
      const command = new Command<GatewayLine>(args, { DEALGATE_DATABASE: way.url })
      stopAtEnd(t, 'services', command)
      t.teardown(() => goOn(command.pid))
      await command.start()
      return { command, way, url: `http://127.0.0.1:${port}` }
    }),
  )
  const pair = started.map(({ command }) => command.line).find(({ secretKey }) => secretKey !== undefined)
  const between = await Between.start(t, {
    url: '',
    accessKey: pair?.accessKey ?? '',
    secretKey: pair?.secretKey ?? '',
  })
  // As of HAProxy.
  between.lost = { status: 502, type: 'text/html', body: '<html><body><h1>502 Bad Gateway</h1></body></html>\n' }
  between.route = () => {
    const running = started.filter(({ command }) => command.running)
    return running[Math.floor(Math.random() * running.length)]?.url ?? 'http://127.0.0.1:9'
  }
  return {
    between,
    data,
    all: started.map(({ command, way }) => ({
      way,
      get pid() {
        return command.pid
      },
      kill9: () => command.kill9(),
      start: () => command.start(),
    })),
  }
}

/** Stops a process as it is for so long, ms. */
export async function paused({ pid }: { readonly pid: number }, ms: number): Promise<void> {
  process.kill(pid, 'SIGSTOP')
  await sleep(ms)
  process.kill(pid, 'SIGCONT')
}

export async function restarted(process: Pick<OneGateway, 'kill9' | 'start'>): Promise<void> {
  await process.kill9()
  await process.start()
}

/** Lets a stopped process end. */
export function goOn(pid: number): void {
  try {
    process.kill(pid, 'SIGCONT')
  } catch {
    // It has ended.
  }
}
