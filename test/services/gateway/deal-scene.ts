import { cpSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { type RunningGateway, startGateway } from '../../../services/gateway/gateway.js'
import type { GatewayOptions, ServicesLog } from '../../../services/index.js'
import { silentLog } from '../../../services/log.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { countRows } from '../../support/content/rows.js'
import { databaseOf } from '../engine.js'
import { Gate, inHalves, ScriptedNetwork } from '../scripted-network.js'
import { connectTo } from './client.js'
import { DealClient } from './deal-client.js'

interface SceneOptions {
  readonly of?: Scene
  readonly network?: ScriptedNetwork
  readonly folder?: string
  readonly bodies?: GatewayOptions['bodies']
  readonly log?: ServicesLog
}

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

  /** A new gateway with a bucket; with `of`, another one over the folder and the network of that scene. */
  static async start(t: Test, given: SceneOptions = {}): Promise<Scene> {
    const { of, network = of?.network ?? new ScriptedNetwork(), bodies, log = silentLog } = given
    const data = given.folder ?? of?.folder ?? join(temporaryFolder(t), 'gateway')
    const limits = { stopMs: 100, reconcileMs: 50 }
    const database = await databaseOf(data)
    const options = { host: '127.0.0.1', port: 0, limits, quirks: [], bodies, database }
    const running = await startGateway(data, options, { network }, log)
    t.teardown(() => running.stop().catch(() => {}))
    const client = new DealClient(await connectTo({ gateway: running }))
    if (of === undefined) await client.gateway.call('MakeBucket', { bucketName: 'bucket' })
    return new Scene(network, data, running, client)
  }

  /** Another gateway over what the disk holds now, as after `kill -9`. */
  afterCrash(t: Test, network = this.network): Promise<Scene> {
    const folder = join(temporaryFolder(t), 'gateway')
    cpSync(this.folder, folder, { recursive: true, filter: (source) => !source.endsWith('-shm') })
    return Scene.start(t, { of: this, folder, network })
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

  /** Holds each delivery of the network back after so many bytes. */
  heldAfter(bytes: number): Gate {
    const gate = new Gate()
    this.network.deliver = async function* (body) {
      if (bytes > 0) yield body.subarray(0, bytes)
      await gate.pass()
      yield* inHalves(body.subarray(bytes))
    }
    return gate
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
