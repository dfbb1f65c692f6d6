import { join } from 'node:path'
import type { Test } from 'tap'
import { DealClient } from '../services/deal-client.js'
import { Client } from '../services/gateway-client.js'
import { bytes, hashesOf, hashTree, writeTree } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { firstAccount } from '../support/gateway/embedded.js'
import { findClient, type RunOptions, run, runFailing } from '../support/programs/run.js'
import { CLI } from '../support/server/cli.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { send, targetOf } from '../support/sign/send.js'
import { signedRequest } from '../support/sign/signed-request.js'
import { until } from '../support/waiting.js'

const SCRIPT = 'examples/offline-archive/archive.sh'
const BUCKET = 'archive'
const FILES = { 'one.bin': bytes('one', 30_000), 'with a folder/two.txt': Buffer.from('two') }
const KEYS = Object.keys(FILES)

/** Hashes of the files that the story stores, by path. */
export const STORED = hashesOf(FILES)

/** Epochs that only the test lets go by. */
export const CONTROLLED = ['--network-epoch-seconds', '86400', '--network-control', 'on']

interface TaskState {
  readonly task_status: string
  readonly deals: readonly { readonly status: string; readonly miner_fid: string | null }[]
}

/** examples/offline-archive with a server of its own, and a home for aws-cli. */
export class Story {
  readonly server: Dealgate
  readonly #home: string
  /** UUID of the task. */
  #task = ''

  private constructor(server: Dealgate, home: string) {
    this.server = server
    this.#home = home
  }

  /** Undefined, with the test skipped, without aws-cli. */
  static async start(t: Test, args: readonly string[] = []): Promise<Story | undefined> {
    if (!(await findClient(t, 'aws'))) return undefined
    const server = await startDealgate(t, {
      args: ['--config', 'examples/offline-archive/dealgate.json', ...args],
    })
    const home = temporaryFolder(t)
    await writeTree(join(home, 'folder'), FILES)
    return new Story(server, home)
  }

  /** Signs in, stores the folder and posts its task. */
  async store(): Promise<void> {
    const input = `${this.server.platformPassword}\n`
    await run(SCRIPT, ['store', this.#folder, BUCKET], { ...this.#options(), input })
  }

  /** Does what `store` does without the script and its programs. */
  async storeDirectly(MaxPrice = '0.000001'): Promise<void> {
    const terms = { IsPublic: true, AutoBid: true, MaxPrice, ExpireDays: 1 }
    await this.#send('PUT', `/${BUCKET}`)
    await this.#send('POST', `/${BUCKET}?x-deal-config=`, JSON.stringify({ OfflineTerms: terms }))
    for (const [key, content] of Object.entries(FILES))
      await this.#send('PUT', targetOf(BUCKET, key), content, { 'x-amz-storage-class': 'DEEP_ARCHIVE' })
    const wait = { prefer: 'wait=300' }
    const posted = await this.#send('POST', `/${BUCKET}?x-deal-offline=&format=json`, '{}', wait)
    this.#task = JSON.parse(posted.toString('utf8')).Task.TaskUuid
  }

  /** Hashes of the objects, by path. */
  async read(): Promise<Record<string, string>> {
    const found = await Promise.all(
      KEYS.map(async (key) => [key, await this.#send('GET', targetOf(BUCKET, key))] as const),
    )
    return hashesOf(Object.fromEntries(found))
  }

  /** Does what `restore` does without the script and its programs. */
  async restoreDirectly(): Promise<Record<string, string>> {
    const order = '<RestoreRequest><Days>7</Days></RestoreRequest>'
    for (const key of KEYS) await this.#send('POST', targetOf(BUCKET, key, 'restore='), order)
    await until('the objects are back', async () => {
      const answers = await Promise.all(KEYS.map((key) => this.#head(key)))
      return answers.every(({ headers }) => String(headers['x-amz-restore']).includes('ongoing-request="false"'))
    })
    return this.read()
  }

  /** Tries to do so with a wrong password. Resolves with what the script prints. */
  storeWithWrongPassword(): Promise<string> {
    return runFailing(SCRIPT, ['store', this.#folder, BUCKET], { ...this.#options(), input: 'wrong\n' })
  }

  async show(): Promise<string> {
    return (await run(SCRIPT, ['show', BUCKET], this.#options())).toString('utf8')
  }

  /** Hashes of what comes back, by path. */
  async restore(): Promise<Record<string, string>> {
    const folder = join(this.#home, 'back')
    await run(SCRIPT, ['restore', BUCKET, folder], this.#options())
    return hashTree(folder)
  }

  /** Resolves when the bytes of all objects are only in deals. */
  async untilCold(): Promise<void> {
    await until('the objects are only in deals', async () =>
      (await this.classes()).every((storageClass) => storageClass === 'DEEP_ARCHIVE'),
    )
  }

  /** The storage class of each object. */
  async classes(): Promise<unknown[]> {
    const answers = await Promise.all(KEYS.map((key) => this.#head(key)))
    return answers.map(({ headers }) => headers['x-amz-storage-class'])
  }

  async advance(epochs: number): Promise<void> {
    await (await this.#network()).advance(String(epochs))
  }

  async fault(minerId: string, fault: string, on = true): Promise<void> {
    await (await this.#network()).fault(fault, on, minerId)
  }

  /** Resolves when the only deal of the task is in this state. Returns its provider. */
  async untilDealIs(status: string): Promise<string> {
    return until(`the deal is ${status}`, async () => {
      const { deals } = await this.#taskState()
      return deals.length === 1 && deals[0]?.status === status && (deals[0].miner_fid ?? undefined)
    })
  }

  /** Resolves when the task is in this state. */
  async untilTaskIs(status: string): Promise<void> {
    await until(`the task is ${status}`, async () => (await this.#taskState()).task_status === status)
  }

  /** Lets the providers bid, and the best one fetch the CAR. Returns it. */
  async untilDownloaded(): Promise<string> {
    await this.advance(2)
    await this.advance(20)
    return this.untilDealIs('Downloaded')
  }

  /** Lets the provider begin to import what it has. */
  async beginImport(): Promise<void> {
    await this.advance(1)
    await this.untilDealIs('ReadyForImport')
    await this.advance(1)
  }

  /** Lets the provider seal what it has imported. */
  async seal(): Promise<void> {
    await this.untilDealIs('FileImported')
    await this.advance(252)
    await this.untilDealIs('DealActive')
  }

  async #taskState(): Promise<TaskState> {
    const { data } = await (await this.#network()).ask(`offlinedeals/${BUCKET}?uuid=${this.#task}`)
    return data as TaskState
  }

  get #folder(): string {
    return join(this.#home, 'folder')
  }

  async #send(method: string, target: string, body: Buffer | string = '', headers = {}): Promise<Buffer> {
    const json = typeof body === 'string' && body.startsWith('{')
    const type = { 'content-type': json ? 'application/json' : 'application/octet-stream' }
    const sending = { method, target, body: Buffer.from(body), headers: { ...type, ...headers } }
    const answer = await send(this.server, sending)
    if (answer.status >= 300) throw new Error(`${method} ${target}: ${answer.body}`)
    return answer.body
  }

  #head(key: string) {
    const { endpoint, accessKey, secretKey } = this.server
    const keys = { accessKeyId: accessKey, secretAccessKey: secretKey }
    return signedRequest(endpoint, keys, { method: 'HEAD', path: `/${BUCKET}/${key}` })
  }

  /** A client of the gateway, which moves the time of the network and breaks its providers. */
  async #network(): Promise<DealClient> {
    const { gateway, data } = this.server
    const client = new Client(gateway, 'gateway')
    const { accessKey: username, secretKey: password } = firstAccount(data)
    client.token = (await client.call('Login', { username, password })).token
    return new DealClient(client)
  }

  #options(): RunOptions {
    const { endpoint, platform, gateway } = this.server
    const env = {
      HOME: this.#home,
      DEALGATE: [process.execPath, ...CLI].join(' '),
      DEALGATE_PLATFORM_URL: platform,
      DEALGATE_GATEWAY_PORT: new URL(gateway).port,
      AWS_ENDPOINT_URL: endpoint,
      AWS_EC2_METADATA_DISABLED: 'true',
    }
    return { env, timeoutMs: 300_000 }
  }
}
