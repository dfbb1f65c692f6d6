import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { serve } from '../../../cli/process/listen.js'
import { type Services, startServices } from '../../../services/index.js'
import type { Limits } from '../../../src/api/limits.js'
import type { Plugin } from '../../../src/api/plugin.js'
import { createProxy } from '../../../src/server/create-proxy.js'
import type { Endpoint } from '../sign.js'

interface LogLine {
  readonly msg?: string
  readonly plugin?: string
  readonly operation?: string
  readonly hook?: string
  readonly access?: { readonly requestId: string; readonly operation: string; readonly plugin?: string }
}

/** A dealgate in this process, spoken to over TCP. */
export interface Running extends Endpoint {
  /** Everything that it has logged. */
  readonly lines: LogLine[]
  stop(): Promise<void>
}

interface Wanted {
  readonly plugins: readonly Plugin[]
  readonly limits?: Partial<Limits>
  /** The same name finds the same data again. */
  readonly data: string
}

/** The embedded services, and any number of proxies over them, on free ports and in a temporary folder. */
export class Bench {
  readonly #folder: string
  readonly #services: Services
  readonly #running = new Set<Running>()

  private constructor(folder: string, services: Services) {
    this.#folder = folder
    this.#services = services
  }

  static async open(): Promise<Bench> {
    const folder = await mkdtemp(join(tmpdir(), 'dealgate-suite-'))
    const services = await startServices({ data: join(folder, 'services'), gateway: { host: '127.0.0.1', port: 0 } })
    return new Bench(folder, services)
  }

  /** Rejects as createProxy does. */
  async start({ plugins, limits, data }: Wanted): Promise<Running> {
    const lines: LogLine[] = []
    const keys = { accessKey: 'plugin-suite', secretKey: 'plugin-suite-secret' }
    const proxy = await createProxy({
      gateway: { url: this.#services.gateway.url, account: () => this.#services.gateway.credentials() },
      identities: [{ accessKeyId: keys.accessKey, secretAccessKey: keys.secretKey }],
      data: join(this.#folder, data),
      log: pino({ level: 'debug', base: null }, { write: (line: string) => lines.push(JSON.parse(line)) }),
      limits,
      plugins,
    })
    const serving = await serve({ handler: proxy, host: '127.0.0.1', port: 0 })
    const running: Running = {
      ...keys,
      endpoint: serving.url,
      region: 'us-east-1',
      lines,
      stop: async () => {
        if (!this.#running.delete(running)) return
        await serving.close(1000)
        await proxy.close()
      },
    }
    this.#running.add(running)
    return running
  }

  async close(): Promise<void> {
    for (const running of this.#running) await running.stop()
    await this.#services.stop()
    await rm(this.#folder, { recursive: true, force: true })
  }
}
