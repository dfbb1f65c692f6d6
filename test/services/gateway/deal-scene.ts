import { cpSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { type RunningGateway, startGateway } from '../../../src/services/gateway/gateway.js'
import type { GatewayOptions, QuirkName } from '../../../src/services/index.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { countRows } from '../../support/content/rows.js'
import { databaseOf } from '../engine.js'
import { ScriptedNetwork } from '../scripted-network.js'
import { connectTo } from './client.js'
import { DealClient } from './deal-client.js'

const log = { info: () => {}, warn: () => {}, error: () => {} }

/** A gateway over a network that does what the test says. */
export class Scene {
  readonly network: ScriptedNetwork
  readonly folder: string
  readonly running: RunningGateway
  readonly client: DealClient

  private constructor(network: ScriptedNetwork, folder: string, running: RunningGateway, client: DealClient) {
    this.network = network
    this.folder = folder
    this.running = running
    this.client = client
  }

  /** A gateway over the folder, by default a new one with a bucket. */
  static async start(
    t: Test,
    network = new ScriptedNetwork(),
    folder?: string,
    quirks: QuirkName[] = [],
    bodies?: GatewayOptions['bodies'],
  ): Promise<Scene> {
    const data = folder ?? join(temporaryFolder(t), 'gateway')
    const limits = { stopMs: 100, reconcileMs: 50 }
    const database = await databaseOf(data)
    const options = { host: '127.0.0.1', port: 0, limits, quirks, bodies, database }
    const running = await startGateway(data, options, { network }, log)
    t.teardown(() => running.stop().catch(() => {}))
    const client = new DealClient(await connectTo({ gateway: running }))
    if (folder === undefined) await client.gateway.call('MakeBucket', { bucketName: 'bucket' })
    return new Scene(network, data, running, client)
  }

  /** Another gateway over what the disk holds now, as after `kill -9`. */
  afterCrash(t: Test, network = this.network): Promise<Scene> {
    const copy = join(temporaryFolder(t), 'gateway')
    mkdirSync(copy)
    cpSync(this.folder, copy, { recursive: true, filter: (source) => !source.endsWith('-shm') })
    return Scene.start(t, network, copy)
  }

  files(): string[] {
    const names = readdirSync(join(this.folder, 'objects'), { recursive: true, encoding: 'utf8' })
    return names.filter((name) => name.includes('/'))
  }

  count(sql: string): number {
    return countRows(join(this.folder, 'index.db'), sql)
  }

  remove(...objects: string[]): Promise<unknown> {
    return this.client.gateway.call('RemoveObject', { bucketName: 'bucket', objects })
  }

  /** What was packed under the reference that was asked for last. */
  lastBodies(): Buffer[] {
    return [...([...this.network.deals.values()].at(-1)?.bodies.values() ?? [])]
  }

  async cold(key: string, body: Buffer | string): Promise<string> {
    const generation = await this.client.put('bucket', key, body)
    await this.client.deal('bucket', key)
    const evicted = await this.client.evict('bucket', key, generation)
    if (evicted.status !== 'success') throw new Error(evicted.message)
    return generation
  }
}
