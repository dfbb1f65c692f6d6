import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { openKeystore } from '../../src/cli/wallet/keystore.js'
import { bytes } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { writeKeystore } from '../support/content/keystore.js'
import { type Finished, findClient, type RunOptions, run, runAny } from '../support/programs/run.js'
import { CLI, runCli } from '../support/server/cli.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { signedRequest } from '../support/sign/signed-request.js'
import { until } from '../support/waiting.js'

const SCRIPT = 'examples/pay-for-storage/pay.sh'
const BUCKET = 'letters'
const KEY = 'letter.bin'
export const PASSWORD = 'correct horse'

/** What `show` prints. Amounts are millionths of a coin. */
export interface Shown {
  readonly status: string
  readonly deals: readonly string[]
  readonly paid: bigint
  readonly unlocked: bigint
}

interface LiveUpload {
  readonly Status: string
  readonly Upload: { readonly OfflineDeals: readonly { readonly Status: string }[] }
}

export interface StoryOptions {
  /** The wallet is there already, linked to the key pair; otherwise the script makes it. */
  readonly walletKey?: Uint8Array
  readonly env?: Record<string, string>
}

/** examples/pay-for-storage with a server of its own, a home for aws-cli, and a wallet. */
export class PayStory {
  readonly server: Dealgate
  readonly #home: string

  private constructor(server: Dealgate, home: string) {
    this.server = server
    this.#home = home
  }

  /** Undefined, with the test skipped, without aws-cli. */
  static async start(t: Test, { env = {}, walletKey }: StoryOptions = {}): Promise<PayStory | undefined> {
    if (!(await findClient(t, 'aws'))) return undefined
    const server = await startDealgate(t, {
      args: ['--config', 'examples/pay-for-storage/dealgate.json'],
      env,
    })
    const story = new PayStory(server, temporaryFolder(t))
    writeFileSync(join(story.#home, KEY), bytes('letter', 30_000))
    const wallet = join(server.data, 'wallet.json')
    if (walletKey === undefined) {
      await run(SCRIPT, ['wallet'], { ...story.#options(), input: `${PASSWORD}\n` })
      // Each payment opens it.
      writeKeystore(wallet, PASSWORD, (await openKeystore(wallet, PASSWORD)).secretKey)
    } else {
      writeKeystore(wallet, PASSWORD, walletKey)
      await story.#wallet('link', '--password', PASSWORD, '--endpoint-url', server.endpoint)
    }
    return story
  }

  /** Stores the file and uploads it. Returns the name by which it is paid. */
  async store(): Promise<string> {
    const said = (await run(SCRIPT, ['store', join(this.#home, KEY), BUCKET], this.#options())).toString('utf8')
    const [, wCid, url] = /^Upload: \d+\nFor payments: (\S+)\nReadable at: (\S+)\n$/.exec(said) ?? []
    if (wCid === undefined || url === undefined) throw new Error(said)
    const content = Buffer.from(await (await fetch(url)).arrayBuffer())
    if (!content.equals(bytes('letter', 30_000))) throw new Error(`${url} is not the file`)
    return wCid
  }

  /** @param coins absent: the least payment */
  pay(coins?: string): Promise<Finished> {
    const amount = coins === undefined ? [] : [coins]
    return runAny(SCRIPT, ['pay', BUCKET, KEY, ...amount], { ...this.#options(), input: `${PASSWORD}\n` })
  }

  async show(): Promise<Shown> {
    const said = (await run(SCRIPT, ['show', BUCKET, KEY], this.#options())).toString('utf8')
    const find = (name: string): string | undefined => new RegExp(`^${name}: (.*)$`, 'm').exec(said)?.[1]
    return {
      status: find('Status') ?? said,
      deals: [...said.matchAll(/^Deal: (.*)$/gm)].map(([, deal = '']) => deal),
      paid: BigInt(find('Paid') ?? 0),
      unlocked: BigInt(find('Unlocked') ?? 0),
    }
  }

  /** Of the upload, without a program for it: one takes seconds on a busy machine. */
  async status(): Promise<string> {
    return (await this.#upload()).Status
  }

  /** States of its deals. */
  async deals(): Promise<readonly string[]> {
    return (await this.#upload()).Upload.OfflineDeals.map(({ Status }) => Status)
  }

  async untilStatus(status: string): Promise<void> {
    await until(`the upload is ${status}`, async () => (await this.status()) === status)
  }

  async fund(coins: string): Promise<void> {
    await this.#wallet('fund', coins)
  }

  /** Millionths of a coin. */
  async balance(): Promise<bigint> {
    const { balance } = JSON.parse(await this.#wallet('balance'))
    return BigInt(Math.round(Number(balance) * 1e6))
  }

  async #upload(): Promise<LiveUpload> {
    const { endpoint, accessKey, secretKey } = this.server
    const keys = { accessKeyId: accessKey, secretAccessKey: secretKey }
    const request = { method: 'GET', path: `/${BUCKET}/${KEY}`, query: { 'x-pay': '', format: 'json' } }
    const { body } = await signedRequest(endpoint, keys, request)
    return JSON.parse(body.toString()).Uploads[0]
  }

  async #wallet(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await runCli(['wallet', ...args, '--data', this.server.data, '--print', 'json'])
    if (code !== 0) throw new Error(stderr)
    return stdout
  }

  #options(): RunOptions {
    const { endpoint, accessKey, secretKey, payment, data } = this.server
    const env = {
      HOME: this.#home,
      DEALGATE: [process.execPath, ...CLI].join(' '),
      DEALGATE_DATA: data,
      DEALGATE_PAYMENT_PORT: new URL(payment).port,
      AWS_ENDPOINT_URL: endpoint,
      AWS_ACCESS_KEY_ID: accessKey,
      AWS_SECRET_ACCESS_KEY: secretKey,
      AWS_DEFAULT_REGION: 'us-east-1',
      AWS_EC2_METADATA_DISABLED: 'true',
    }
    return { env, timeoutMs: 300_000 }
  }
}
