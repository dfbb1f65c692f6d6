import type { ServicesLog } from '../../log.js'
import { Pins, type PinTable } from '../../network/kubo/pins.js'
import type { Database } from '../../store/database.js'
import type { ContentStore } from './content-store.js'
import { type CopyTable, NodeCopies } from './node-copies.js'

/** Idle timeout of a call, and the time that the node may take to pin a content, ms. */
const TIMEOUT_MS = 60_000
const PIN_MS = 30 * 60_000
const ASK_MS = 5000

export interface KuboCopies {
  readonly copies: NodeCopies
  /** Address of its gateway; undefined when it does not say, or has none. */
  gateway(): Promise<string | undefined>
  stop(): Promise<void>
}

interface KuboDeps {
  readonly db: Database<{ readonly pins: PinTable; readonly copies: CopyTable }>
  readonly contents: Pick<ContentStore, 'fileOf'>
  readonly log: ServicesLog
}

/**
 * Opens the copies of contents on a Kubo node, which need not run yet.
 * @param url of its RPC
 */
export async function openKuboCopies(url: string, { db, contents, log }: KuboDeps): Promise<KuboCopies> {
  const [{ KuboClient }, { KuboNode }] = await Promise.all([
    import('../../network/kubo/kubo-client.js'),
    import('../../network/kubo/kubo-node.js'),
  ])
  const client = new KuboClient({ url, timeoutMs: TIMEOUT_MS })
  const node = new KuboNode(client, PIN_MS)
  const pins = new Pins(db, node, db.shared)
  const copies = new NodeCopies({ node, pins, db, contents, log })
  const gateway = new NodeGateway(async () => {
    const address = await node.gateway(AbortSignal.timeout(ASK_MS))
    return address && gatewayUrl(address, url)
  })
  return {
    copies,
    gateway: () => gateway.address(),
    async stop() {
      await copies.stop()
      await client.close()
    },
  }
}

/** Addresses that mean the machine of the node itself. */
const OWN = /^(0\.0\.0\.0|127(\.\d+){3}|::1?|localhost)$/

/**
 * The address of a node's gateway, which listens on a multiaddress; undefined when clients cannot know it. One that
 * only the machine of the node understands stands for the host by which its RPC is reached.
 * @param address such as `/ip4/127.0.0.1/tcp/8080`
 * @param rpc URL of the RPC of the node
 */
function gatewayUrl(address: string, rpc: string): string | undefined {
  const [, kind, host = '', port = ''] =
    /^\/(ip4|ip6|dns|dns4|dns6)\/([^/]+)\/tcp\/(\d+)(?:\/http)?$/.exec(address) ?? []
  if (kind === undefined || port === '0') return undefined
  const reached = OWN.test(host) ? new URL(rpc).hostname : kind === 'ip6' ? `[${host}]` : host
  return `http://${reached}:${port}`
}

/** Time for which a node that gave no address is not asked again, ms. */
const AGAIN_MS = 10_000

/**
 * Address of the gateway of a node, which is asked for once. A node that does not answer, or has none, is asked again
 * after some time, and by one at a time: each answer that names the address would wait for it.
 */
class NodeGateway {
  readonly #ask: () => Promise<string | undefined>
  readonly #now: () => number
  #known: string | undefined
  #asking: Promise<string | undefined> | undefined
  #askAgain = Number.NEGATIVE_INFINITY

  /** @param now monotonic, ms */
  constructor(ask: () => Promise<string | undefined>, now: () => number = () => performance.now()) {
    this.#ask = ask
    this.#now = now
  }

  /** Undefined when it is not known. Never rejects. */
  async address(): Promise<string | undefined> {
    // The configuration of a node cannot change while it runs.
    if (this.#known !== undefined || this.#now() < this.#askAgain) return this.#known
    this.#asking ??= this.#learn().finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  async #learn(): Promise<string | undefined> {
    this.#known = await this.#ask().catch(() => undefined)
    this.#askAgain = this.#now() + AGAIN_MS
    return this.#known
  }
}
