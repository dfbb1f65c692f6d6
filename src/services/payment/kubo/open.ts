import type { Database, Writer } from '../../database.js'
import type { ServicesLog } from '../../log.js'
import type { ContentStore } from '../contents/content-store.js'
import { CopyTable, UNNEEDED } from './copy-table.js'
import { gatewayUrl } from './gateway-url.js'
import { NodeCopies } from './node-copies.js'
import { NodeGateway } from './node-gateway.js'

/** Idle timeout of a call, and the time that the node may take to pin a content, ms. */
const TIMEOUT_MS = 60_000
const PIN_MS = 30 * 60_000
const ASK_MS = 5000

/** A Kubo node that has the contents. */
export interface KuboCopies {
  readonly copies: NodeCopies
  /** Address of its gateway; undefined when it does not say, or has none. */
  gateway(): Promise<string | undefined>
  stop(): Promise<void>
}

export interface KuboParts {
  readonly db: Database
  readonly writer: Writer
  readonly contents: ContentStore
  readonly log: ServicesLog
}

/**
 * Opens the copies of contents on a Kubo node, which need not run yet.
 * @param url of its RPC
 */
export async function openKuboCopies(url: string, { db, writer, contents, log }: KuboParts): Promise<KuboCopies> {
  const [{ KuboClient }, { KuboNode }, { Pins }] = await Promise.all([
    import('../../network/kubo/kubo-client.js'),
    import('../../network/kubo/kubo-node.js'),
    import('../../network/kubo/pins.js'),
  ])
  const client = new KuboClient({ url, timeoutMs: TIMEOUT_MS })
  const node = new KuboNode(client, PIN_MS)
  const pins = new Pins(db, writer, node, UNNEEDED)
  const copies = new NodeCopies({ node, pins, table: new CopyTable(db), contents, writer, log })
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
